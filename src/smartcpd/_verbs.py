"""The modules that perform the verbs of models, histories and estimators.

See `smartcpd._common.doors`.
"""

from smartcpd._common.doors import doors

PERFORMED_BY = {
    "smartcpd._estimator.notebook": ["shown_estimator"],
    "smartcpd._fitting.converters": [
        "from_pyttb",
        "from_tensorly",
        "to_frame",
        "to_polars",
        "to_pyttb",
        "to_tensorly",
        "to_xarray",
    ],
    "smartcpd._fitting.exposed_models": ["with_exposure", "without_exposure"],
    "smartcpd._fitting.mean_loss": ["mean_loss"],
    "smartcpd._fitting.persistence": ["load", "save"],
    "smartcpd._fitting.ranking": ["top"],
    "smartcpd._fitting.shares": ["places_by_share"],
    "smartcpd._inference.diagnosis": ["diagnose"],
    "smartcpd._inference.intervals": ["intervals"],
    "smartcpd._inference.predictive": ["predictive_score"],
    "smartcpd._inference.relations": ["relate"],
    "smartcpd._inference.scoring": ["dispersion", "score_samples", "surprise"],
    "smartcpd._inference.streaming.arrivals": ["arrive", "check_forgetting", "past_of"],
    "smartcpd._inference.streaming.transform": ["transform", "with_new_rows"],
    "smartcpd.report.of_model": ["report"],
    "smartcpd.report.notebook": ["shown_in_notebook"],
    "smartcpd.plots": [
        "plot_calibration",
        "plot_comparison",
        "plot_component",
        "plot_consensus",
        "plot_intervals",
        "plot_residuals",
        "plot_history",
        "plot_model",
        "plot_relation",
        "plot_replication",
        "plot_scree",
        "plot_selection",
    ],
}
"""The verbs that each module performs, in functions of the same names."""

doors.leads.update({verb: module for module, verbs in PERFORMED_BY.items() for verb in verbs})
