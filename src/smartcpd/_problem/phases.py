"""The phases of a stochastic descent: a step rule, a mirror map a mode, and when to go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from smartcpd import mirrors, steps
from smartcpd.constraints import Constraint
from smartcpd.errors import IncompatibleError
from smartcpd.losses import Domain, Loss
from smartcpd.mirrors import Mirror
from smartcpd.steps import Step
from smartcpd.steps.mixed import Mixed, SettlingAdagrad


@dataclass(frozen=True)
class Phase:
    """A stretch of the fit with one step rule and one mirror map a mode.

    ``until`` is the change of the loss from one epoch to the next that ends it; None for the last.
    """

    step: Step
    mirrors: tuple[Mirror, ...]
    until: float | None = None


def phases_of(
    loss: Loss, chosen: tuple[Constraint, ...], maps: list[Any], step: str | Step
) -> tuple[Phase, ...]:
    """Return the phases that a step rule asks for; refuse maps that do not go with the rest."""
    phases = _resolved(loss, chosen, maps, step)
    for phase in phases:
        _check_phase(loss, chosen, phase)
    return phases


def _resolved(
    loss: Loss, chosen: tuple[Constraint, ...], maps: list[Any], step: str | Step
) -> tuple[Phase, ...]:
    if step == "auto":
        step = loss.default_step if _jensen_fits(loss, chosen, maps) else "adagrad"
    rule = steps.get(step)
    if isinstance(rule, Mixed):
        settled = tuple(mirrors.get("quadratic") for _ in chosen)
        return (
            Phase(steps.get("jensen"), _maps(loss, chosen, maps, jensen=True), rule.switch),
            Phase(SettlingAdagrad(), settled),
        )
    return (Phase(rule, _maps(loss, chosen, maps, jensen=rule.needs_convex_part)),)


def _maps(
    loss: Loss, chosen: tuple[Constraint, ...], maps: list[Any], jensen: bool
) -> tuple[Mirror, ...]:
    return tuple(
        _default_mirror(loss, constraint, jensen) if m == "auto" else mirrors.get(m)
        for m, constraint in zip(maps, chosen, strict=True)
    )


def _default_mirror(loss: Loss, constraint: Constraint, jensen: bool) -> Mirror:
    if jensen and loss.jensen_mirror:
        return mirrors.get(loss.jensen_mirror)
    if constraint.needs_quadratic or constraint.signed:
        return mirrors.get("quadratic")
    if constraint.columnwise:
        return mirrors.get("entropy")
    return mirrors.get(loss.default_mirror)


def _jensen_fits(loss: Loss, chosen: tuple[Constraint, ...], maps: list[Any]) -> bool:
    if loss.jensen_mirror is None:
        return False
    phi = mirrors.get(loss.jensen_mirror)
    fits = [m == "auto" or mirrors.get(m) == phi for m in maps]
    return all(fits) and not any(
        c.signed or (c.needs_quadratic and phi.name != "quadratic") for c in chosen
    )


def _check_phase(loss: Loss, chosen: tuple[Constraint, ...], phase: Phase) -> None:
    for mode, (constraint, phi) in enumerate(zip(chosen, phase.mirrors, strict=True)):
        if loss.domain is Domain.NONNEGATIVE and constraint.signed:
            raise IncompatibleError(
                f"Loss '{loss}' needs a nonnegative model, but constraint '{constraint}' of mode "
                f"{mode} lets entries be negative. Use constraint='nonnegative'."
            )
        if constraint.signed and not phi.signed:
            raise IncompatibleError(
                f"Mirror map '{phi}' is defined for nonnegative entries only, but constraint "
                f"'{constraint}' of mode {mode} lets them be negative. "
                "Use mirror='quadratic' or constraint='nonnegative'."
            )
        if constraint.needs_quadratic and phi.name != "quadratic":
            raise IncompatibleError(
                f"Constraint '{constraint}' of mode {mode} has a projection for the quadratic map "
                f"only; got mirror '{phi}'. "
                + (
                    "Use step='adagrad'."
                    if phase.step.needs_convex_part
                    else "Use mirror='quadratic' or mirror='auto'."
                )
            )
        if phase.step.needs_convex_part:
            _check_jensen(loss, constraint, phi, mode)


def _check_jensen(loss: Loss, constraint: Constraint, phi: Mirror, mode: int) -> None:
    if loss.jensen_mirror is None:
        raise IncompatibleError(
            f"Loss '{loss}' has no mirror map under which Jensen steps majorise it. "
            "Use step='adagrad'."
        )
    if constraint.signed:
        raise IncompatibleError(
            f"Jensen steps need nonnegative factors, but constraint '{constraint}' of mode {mode} "
            "lets entries be negative. Use constraint='nonnegative' or step='adagrad'."
        )
    if phi != mirrors.get(loss.jensen_mirror):
        raise IncompatibleError(
            f"Jensen steps need mirror '{mirrors.get(loss.jensen_mirror)}' for loss '{loss}'; "
            f"got '{phi}' for mode {mode}. Use mirror='auto' or step='adagrad'."
        )
