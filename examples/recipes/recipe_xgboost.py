"""
XGBoost
=======

The same for XGBoost, with its native interface: ``multi:softprob`` predicts probabilities, and with
``output_margin=True`` logits, which polycal takes with ``from_logits=True``.
"""

import xgboost
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

import polycal as pc

X, y = make_classification(6000, 20, n_informative=8, n_classes=4, flip_y=0.2, random_state=0)
X_fit, X_rest, y_fit, y_rest = train_test_split(X, y, test_size=0.6, random_state=0)
X_cal, X_new, y_cal, y_new = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)

# %%
# Fit, and predict logits of rows that the trees have not seen.
options = {"objective": "multi:softprob", "num_class": 4, "max_depth": 5, "nthread": 1, "seed": 0}
booster = xgboost.train(options, xgboost.DMatrix(X_fit, y_fit), num_boost_round=200)
logits_cal = booster.predict(xgboost.DMatrix(X_cal), output_margin=True)
logits_new = booster.predict(xgboost.DMatrix(X_new), output_margin=True)

# %%
# How far can the sum of two classes' probabilities be trusted, and the most likely class?
audit = pc.audit(y_new, logits_new, groups={"first two": [0, 1]}, from_logits=True)
for question in (audit.confidence, *audit.groups):
    print(f"{question.name}: off by {question.at_least:.3f} to {question.at_most:.3f}")

# %%
# Repair. A calibrator that is made with ``from_logits=True`` takes logits ever after.
calibrator = pc.KernelCalibrator(from_logits=True).fit(logits_cal, y_cal)
before = pc.log_loss(y_new, logits_new, from_logits=True)
after = pc.log_loss(y_new, calibrator.predict_proba(logits_new))
print(f"log loss {before:.3f} -> {after:.3f}")
