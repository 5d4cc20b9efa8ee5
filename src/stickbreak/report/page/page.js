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

let chosen = null;
const parts = [...document.querySelectorAll("[data-of]")];
const rows = new Map([...table.tBodies[0].rows].map((row) => [row.dataset.of, row]));
const words = (row) => heads.map((head, i) => `${head.textContent}: ${row.cells[i].textContent.trim()}`).join("\n");
const show = (number) => {
  parts.forEach((part) => part.classList.toggle("faded", number !== null && part.dataset.of !== number));
};
const choose = (number) => {
  chosen = number === chosen ? null : number;
  rows.forEach((row, own) => row.cells[0].firstChild.setAttribute("aria-pressed", own === chosen));
  show(chosen);
};
rows.forEach((row, number) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = row.cells[0].textContent;
  button.setAttribute("aria-pressed", false);
  row.cells[0].replaceChildren(button);
});
parts.forEach((part) => {
  const number = part.dataset.of;
  part.addEventListener("pointerenter", () => show(number));
  part.addEventListener("pointerleave", () => show(chosen));
  if (part.tagName === "FIGURE" || !rows.has(number)) return;
  part.addEventListener("click", () => choose(number));
  if (part instanceof SVGElement) {
    const title = document.createElementNS(part.namespaceURI, "title");
    title.textContent = words(rows.get(number));
    part.prepend(title);
  }
});
document.addEventListener("keydown", (event) => event.key === "Escape" && choose(null));
document.getElementById("hint").hidden = false;
