const table = document.getElementById("table");
const heads = [...table.tHead.rows[0].cells];
const value = (row, column) => {
  const cell = row.cells[column];
  return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
};
const sort = (column) => {
  const up = heads[column].getAttribute("aria-sort") !== "ascending";
  const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b));
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => (up ? 1 : -1) * compare(value(a, column), value(b, column)));
  table.tBodies[0].append(...rows);
  heads.forEach((head) => head.removeAttribute("aria-sort"));
  heads[column].setAttribute("aria-sort", up ? "ascending" : "descending");
};
heads.forEach((head, column) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = head.textContent;
  button.addEventListener("click", () => sort(column));
  head.replaceChildren(button);
});
