"""polycal inside the tools people have: scikit-learn, torchmetrics, Hugging Face, MLflow, pytest, GitHub.

Each module imports its tool, and only when it is imported itself. `assert_calibrated` and the scikit-learn displays
need nothing more and are found here; `polycal.integrations.torchmetrics`, ``.evaluate``, ``.transformers`` and
``.mlflow`` need the package that they are named after.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
