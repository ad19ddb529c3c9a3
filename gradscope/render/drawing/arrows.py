"""What stands beside the arrows of a picture, and how thick they are.

Must not know where they lead in the drawing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter

import msgspec

from gradscope.render.drawing.labels import MAGENTA, Labels
from gradscope.render.drawing.scene import Scene
from gradscope.render.options import Mark
from gradscope.render.words import numbers
from gradscope.simplify import Link
from gradscope.simplify.gradients import middle

WEIGHT = attrgetter("weight")


class Arrows:
    """The arrows of one scene."""

    def __init__(self, scene: Scene, labels: Labels) -> None:
        self.scene = scene
        self.labels = labels

    def flow(self, link: Link) -> tuple[str, dict[str, str]]:
        """What stands beside an arrow, and how the arrow looks."""
        scene = self.scene
        source, target = (scene.view.items[end] for end in (link.source, link.target))
        once = source.template is not None and source.template == target.template
        # In a template one edge of a round stands for those of all.
        tensor = scene.tensor_of(
            link if not once else msgspec.structs.replace(link, edges=link.edges[:1])
        )
        edges = len(link.edges) // (scene.times(source) if once else 1)
        bundled = f" ·{edges:,}" if edges > 1 else ""
        overlay = scene.options.overlay
        mark = heaviest(overlay.edges if overlay else {}, link.edges)
        if mark is not None:
            words = mark.words + bundled
            return words, {"color": mark.color, "fontcolor": mark.color, "penwidth": "2"}
        if scene.gradients is None:
            return (numbers.shape(tensor.shape) if tensor else "") + bundled, {}
        if once:
            return self._flow_by_rounds(link)
        info = scene.gradients.link(link)
        words = self.labels.gradient(info, tensor) + bundled
        if info.state == "non-finite":
            return words, {"color": MAGENTA, "fontcolor": MAGENTA, "penwidth": "2.5"}
        if info.state != "finite":
            return words, {"style": "dashed"}
        place = scene.scale.fraction(info.norm)
        return words, {"penwidth": f"{1 + 5 * place:.2f}"} if place is not None else {}

    def _flow_by_rounds(self, link: Link) -> tuple[str, dict[str, str]]:
        """The same for an arrow that stands for one in every round."""
        gradients = self.scene.gradients
        infos = gradients.link_by_rounds(link) if gradients else []
        words = self.labels.range(infos)
        if any(info.state == "non-finite" for info in infos):
            return words, {"color": MAGENTA, "fontcolor": MAGENTA, "penwidth": "2.5"}
        place = self.scene.scale.fraction(middle(infos).norm)
        return words, {"style": "dashed"} if place is None else {"penwidth": f"{1 + 5 * place:.2f}"}


def heaviest(marks: Mapping[int, Mark], numbers: Iterable[int]) -> Mark | None:
    """The mark that matters most among some nodes or edges, if one matters."""
    found = [marks[number] for number in numbers if number in marks] if marks else []
    return max((one for one in found if one.weight >= 0), key=WEIGHT, default=None)
