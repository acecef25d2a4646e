"""Whether the rank of a model suits its data, found out in a fraction of the time of the fit."""
