"""The register of rules: code, name, the function that looks, and what it takes precedence over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal

from gradscope.diagnose import (
    across,
    alike,
    cancelled,
    derivative,
    errors,
    gain,
    half,
    loop,
    losses,
    lost,
    meant,
    missing,
    order,
    partial,
    raised,
    sizes,
    spoiling,
    terms,
    unlearned,
    values,
    zero,
)
from gradscope.diagnose._disorders import out_of_order
from gradscope.diagnose._facts import Facts, FindingDraft
from gradscope.diagnose._oddities import looking_for
from gradscope.errors import TargetError

Agreement = Literal["node", "place", "values", "call", "failure", "step before"]
"""What two findings must have in common for one to make the other superfluous: a node; a place in
the source; that the other is about the numbers of this step, which the one has made worthless; that
they are of one backward call; that both say why the program failed; or that the one was found a
step earlier than the other."""

Check = Callable[[Facts], Iterable[FindingDraft]]


@dataclass(frozen=True)
class Rule:
    """One thing that can be wrong.

    ``check`` gives the findings of a report; their code and name are filled in.  ``subsumes`` are
    the codes of the rules whose findings are a consequence of this one's, each with what the two
    must have in common.  That holds whether or not this finding is shown, and if a third subsumes
    it.
    """

    code: str
    name: str
    check: Check
    subsumes: Mapping[str, Agreement] = field(default_factory=dict)

    def covers(self, own: FindingDraft, code: str, other: FindingDraft) -> bool:
        """Whether a finding of this rule makes another rule's of the same step superfluous."""
        match self.subsumes.get(code):
            case "node":
                return not set(own.nodes).isdisjoint(other.nodes)
            case "place":
                return other.location in (own.location, own.explains)
            case "values":
                return other.of_values
            case "call":
                return own.step == other.step
            case "failure":
                return own.fails and other.fails
        return False


_RAISED: dict[str, Agreement] = {"GS410": "failure", "GS413": "failure"}
# What cuts more than one of several ways off is told as that.
_WAY: dict[str, Agreement] = {"GS317": "place"}
_CUT: dict[str, Agreement] = {
    "GS306": "failure",
    "GS310": "place",
    "GS311": "place",
    "GS409": "failure",
    **_WAY,
    **_RAISED,
}
# Whoever looks for NaN in backward, anomaly mode or a hook, raises because of it.
_FOUND_NAN: dict[str, Agreement] = {"GS410": "call"}
_NOT_FINITE: dict[str, Agreement] = {"GS204": "values", "GS205": "values", **_FOUND_NAN}
# What a step has spoilt spoils all that is computed of it.
_SPOILT: dict[str, Agreement] = dict.fromkeys(("GS101", "GS102", "GS103", "GS105"), "node")
# What overflows then, and where it is large by then, is a consequence.
_DIVERGED: dict[str, Agreement] = dict.fromkeys(("GS101", "GS102", "GS206"), "call")
_OVERFLOW: dict[str, Agreement] = dict.fromkeys(("GS101", "GS102", "GS103", "GS105"), "step before")

# A rate is tiny for a reason.
_RATE: dict[str, Agreement] = {"GS313": "call"}

_ALL = (
    Rule("GS101", "nonfinite-forward", values.nonfinite_forward, _NOT_FINITE),
    Rule("GS102", "nonfinite-backward", values.nonfinite_backward, {"GS601": "node", **_FOUND_NAN}),
    Rule(
        "GS103",
        "half-overflow",
        half.half_overflow,
        {"GS101": "node", "GS102": "node", **_FOUND_NAN},
    ),
    Rule("GS104", "half-underflow", half.half_underflow, {"GS205": "node"}),
    Rule("GS105", "nonfinite-input", values.nonfinite_input, {"GS203": "values", **_NOT_FINITE}),
    Rule("GS106", "nonfinite-step", spoiling.nonfinite_step, _SPOILT),
    Rule("GS107", "training-diverges", spoiling.training_diverges, _DIVERGED),
    Rule("GS201", "vanishing-gradient", sizes.vanishing_gradient, _RATE),
    Rule("GS202", "exploding-gradient", sizes.exploding_gradient, {**_OVERFLOW, **_RATE}),
    Rule("GS203", "saturated-activation", sizes.saturated_activation),
    Rule("GS204", "dead-units", sizes.dead_units),
    Rule("GS205", "zero-gradient", zero.zero_gradient, {"GS204": "node"}),
    Rule("GS206", "outlier-gain", gain.outlier_gain),
    Rule("GS207", "units-alike", alike.units_alike),
    Rule("GS301", "unused-parameter", missing.unused_parameter, _RAISED),
    Rule("GS302", "result-unused", missing.result_unused, {"GS515": "place", **_RAISED}),
    Rule("GS303", "history-cut", missing.history_cut, _CUT),
    Rule("GS304", "no-grad-region", missing.no_grad_region, _CUT),
    Rule("GS305", "frozen-parameter", lost.frozen_parameter),
    Rule("GS306", "non-leaf-parameter", lost.non_leaf_parameter, _RAISED),
    Rule("GS307", "not-in-optimizer", lost.not_in_optimizer),
    Rule("GS308", "silent-inplace", lost.silent_inplace),
    Rule("GS309", "reentrant-checkpoint", missing.reentrant_checkpoint, _CUT),
    Rule("GS310", "term-without-gradient", partial.lost_term, _WAY),
    Rule("GS311", "part-cut-off", partial.part_cut_off, _WAY),
    Rule("GS312", "remade-parameter", unlearned.remade_parameter),
    Rule("GS313", "step-changes-nothing", unlearned.step_changes_nothing),
    Rule("GS316", "constant-loss", partial.constant_loss),
    Rule("GS317", "way-cut-off", partial.way_cut_off),
    Rule("GS318", "gradient-cancels", cancelled.gradient_cancels),
    Rule("GS319", "held-at-limit", unlearned.held_at_limit),
    Rule("GS401", "saved-tensor-changed", errors.saved_tensor_changed, _RAISED),
    Rule("GS402", "freed-graph", errors.freed_graph, _RAISED),
    Rule("GS403", "nonscalar-root", errors.nonscalar_root, _RAISED),
    Rule("GS404", "gradient-shape", errors.gradient_shape, _RAISED),
    Rule(
        "GS405",
        "inplace-on-leaf-or-view",
        errors.inplace_on_leaf_or_view,
        {"GS412": "failure", **_RAISED},
    ),
    Rule(
        "GS406",
        "function-returns-wrong",
        errors.function_returns_wrong,
        {"GS601": "node", **_RAISED},
    ),
    Rule("GS407", "not-twice-differentiable", errors.not_twice_differentiable, _RAISED),
    Rule("GS408", "hook-returns-wrong", errors.hook_returns_wrong, _RAISED),
    Rule("GS409", "no-history", errors.no_history, _RAISED),
    Rule("GS410", "backward-raises", raised.backward_raises),
    Rule("GS412", "forward-raises", raised.forward_raises),
    Rule(
        "GS413",
        "gradient-is-none",
        looking_for("none yet", "none left", "none since", "none brought"),
        {"GS412": "failure"},
    ),
    Rule("GS501", "gradients-accumulate", loop.gradients_accumulate),
    Rule("GS502", "growing-graph", loop.growing_graph),
    Rule("GS503", "loss-broadcasts", meant.loss_broadcasts),
    Rule("GS504", "gradient-altered", meant.gradient_altered),
    Rule("GS505", "gradients-unused", loop.gradients_unused),
    Rule("GS506", "clip-unused", out_of_order("clip unused", "clip empty")),
    Rule("GS507", "clip-before-unscale", out_of_order("clip scaled")),
    Rule("GS508", "stale-graph", order.stale_graph),
    Rule("GS509", "step-without-backward", order.step_without_backward),
    Rule("GS510", "accumulation-not-divided", order.accumulation_not_divided),
    Rule("GS511", "scheduler-before-step", out_of_order("scheduler first", "scheduler early")),
    Rule("GS512", "normalised-twice", losses.normalised_twice),
    Rule("GS513", "step-repeated", order.step_repeated),
    Rule(
        "GS515",
        "result-dropped",
        looking_for("gradient dropped", "parameter dropped", "history dropped"),
    ),
    Rule("GS517", "index-repeated", looking_for("index repeated")),
    Rule("GS518", "scaler-out-of-order", errors.scaler_out_of_order),
    Rule("GS520", "derivatives-mixed", looking_for("mixed derivatives")),
    Rule("GS525", "closure-incomplete", out_of_order("closure alone", "closure stale")),
    Rule("GS530", "summed-over-batch", terms.summed_over_batch),
    Rule("GS533", "weight-not-detached", looking_for("weight learns")),
    Rule("GS534", "own-value-compared", looking_for("own value"), {"GS303": "place"}),
    Rule("GS601", "wrong-derivative", derivative.wrong_derivative),
    Rule("GS602", "recomputed-otherwise", looking_for("state not kept", "other numbers")),
    Rule("GS701", "gradient-on-some-ranks", across.gradient_on_some_ranks, _RAISED),
    Rule("GS702", "parameters-drift", across.parameters_drift),
    Rule("GS703", "unequal-calls", across.unequal_calls, _RAISED),
    Rule("GS704", "unequal-batches", across.unequal_batches),
)

RULES: dict[str, Rule] = {rule.code: rule for rule in _ALL}


def find_rule(word: str, more: str = "") -> Rule:
    """The rule with this code, in any case, or this name.

    Args:
        word: the code or name.
        more: where all rules are listed.

    Raises:
        TargetError: there is none.
    """
    known = {name.lower(): rule for rule in _ALL for name in (rule.code, rule.name)}
    if word.lower() in known:
        return known[word.lower()]
    near = get_close_matches(word.lower(), known, n=1, cutoff=0.75)
    meant = f"did you mean {known[near[0]].code} {known[near[0]].name}? " if near else ""
    more = more or "rules go by codes, such as GS303, or by names, such as history-cut"
    raise TargetError(f"unknown rule {word}", f"{meant}{more}")
