"""Whether the rank of a model suits its data, found out in a fraction of the time of the fit."""

from smartcpd._inference.rank_check.check import checked_rank
from smartcpd._inference.rank_check.verdict import RankVerdict, Suits

__all__ = ["RankVerdict", "Suits", "checked_rank"]
