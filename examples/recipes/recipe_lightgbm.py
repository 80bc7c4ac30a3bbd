"""
LightGBM
========

Boosted trees are often too sure of themselves. This fits a small model, finds the question that its probabilities
cannot be trusted for, and repairs them with rows that neither the trees nor the audit have seen.
"""

import lightgbm
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

import polycal as pc

X, y = make_classification(6000, 20, n_informative=8, n_classes=4, flip_y=0.2, random_state=0)
X_fit, X_rest, y_fit, y_rest = train_test_split(X, y, test_size=0.6, random_state=0)
X_cal, X_new, y_cal, y_new = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)

# %%
# Fit, and predict probabilities of all classes. The native interface, ``booster.predict(X)``, gives the same table.
model = lightgbm.LGBMClassifier(n_estimators=300, num_leaves=31, verbose=-1, n_jobs=1, random_state=0)
model.fit(X_fit, y_fit)
proba_cal, proba_new = model.predict_proba(X_cal), model.predict_proba(X_new)

# %%
# Which question can they not be trusted for?
audit = pc.audit(y_new, proba_new)
print(audit.worst.question, f"off by at least {audit.worst.at_least:.3f}")

# %%
# Repair with rows that the model was not fitted on, and compare.
calibrator = pc.KernelCalibrator().fit(proba_cal, y_cal)
before, after = pc.log_loss(y_new, proba_new), pc.log_loss(y_new, calibrator.predict_proba(proba_new))
print(f"log loss {before:.3f} -> {after:.3f}")

# %%
# Or in one estimator, which holds rows out by itself: ``pc.CalibratedClassifier(model, cv=5).fit(X, y)``.
