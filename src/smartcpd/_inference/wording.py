"""Words for numbers of things, singular and plural."""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, thing: str = "component") -> str:
    """Say how many there are of something."""
    return f"{count:,} {thing}{'s' * (count != 1)}"


def components_named(numbers: Sequence[int], most: int = 8) -> str:
    """Name components by their numbers, at most so many of them."""
    shown = [str(number) for number in numbers[:most]]
    if len(numbers) > most:
        return f"Components {', '.join(shown)} and {len(numbers) - most} more"
    if len(shown) == 1:
        return f"Component {shown[0]}"
    return f"Components {', '.join(shown[:-1])} and {shown[-1]}"
