"""Figures of matplotlib as SVG within a page."""

import io
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

from ..plots._canvas import matplotlib

MOST_MARKS = 1500  # of one kind in a picture; more become an image
OF = re.compile(r"of-([\d.]+)-\w+")  # what a picture shows of one cluster or of several (`belongs`, `belong`)
LINK = "{http://www.w3.org/1999/xlink}href"
STYLE = {"svg.fonttype": "none", "figure.dpi": 100, "savefig.dpi": 130, "savefig.facecolor": "white"}


def inline_svg(draw: Callable[[], Any], name: str, alt: str) -> str:
    """What a function draws with pyplot as an SVG element, which refers to nothing outside; its figures are closed.

    Parameters
    ----------
    draw : returns axes or a figure
    name : identifies the picture in the page, so that no two pictures share the name of an element
    alt : what the picture shows, for those who do not see it

    Raises
    ------
    ImportError : matplotlib is not installed.
    """
    pyplot = matplotlib("pyplot")
    before = set(pyplot.get_fignums())
    try:
        with pyplot.rc_context({**STYLE, "svg.hashsalt": name}):
            figure = draw().figure
            _rasterise(figure)
            file = io.BytesIO()
            figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
    finally:
        for number in set(pyplot.get_fignums()) - before:
            pyplot.close(number)
    return _inline(ElementTree.fromstring(file.getvalue()), name, alt)


def _rasterise(figure: Any) -> None:
    """Draw what consists of very many marks as an image: the page stays small."""
    for artist in figure.findobj(matplotlib("collections").Collection):
        if len(artist.get_offsets()) > MOST_MARKS:
            artist.set_rasterized(True)
    for line in figure.findobj(matplotlib("lines").Line2D):
        if len(line.get_xdata()) > MOST_MARKS:
            line.set_rasterized(True)


def _inline(svg: ElementTree.Element, name: str, alt: str) -> str:
    """An SVG document as an element of HTML: without namespaces and metadata, and with names of its own."""
    for child in [child for child in svg if child.tag.endswith("}metadata")]:
        svg.remove(child)
    for number, element in enumerate(svg.iter()):
        element.tag = element.tag.rpartition("}")[2]
        found = OF.fullmatch(element.attrib.get("id", ""))
        if found:
            _point_out(element, found[1].split("."))
            element.attrib["id"] = f"of{number}"
        element.attrib = dict(_own(key, value, name) for key, value in element.attrib.items())
    for key in ("width", "height"):  # the page decides, and should have letters of one size in all pictures
        svg.attrib.pop(key, None)
    points = float(svg.attrib["viewBox"].split()[2])
    svg.attrib |= {"role": "img", "aria-label": alt, "style": f"--points: {points:.0f}"}
    return ElementTree.tostring(svg, encoding="unicode", short_empty_elements=False)


def _point_out(element: ElementTree.Element, clusters: list[str]) -> None:
    """Say in the page which clusters an element shows: one, or one in each of its marks."""
    marks = [element]
    if len(clusters) > 1:
        marks = element.findall(".//{*}use") or [path for path in element.iter() if path.tag.endswith("}path")]
    if len(marks) == len(clusters):
        for mark, k in zip(marks, clusters):
            mark.attrib["data-of"] = k


def _own(key: str, value: str, name: str) -> tuple[str, str]:
    """An attribute in which the names of elements begin with that of the picture."""
    if key == "id":
        return key, f"{name}-{value}"
    if key == LINK:
        return "href", f"#{name}-{value[1:]}" if value.startswith("#") else value
    return key, value.replace("url(#", f"url(#{name}-")
