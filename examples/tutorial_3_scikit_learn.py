"""
A scikit-learn classifier that calibrates itself
================================================

``CalibratedClassifier`` wraps any classifier. It holds rows out by itself, so that one ``fit`` gives a model whose
probabilities were repaired on rows that it was not trained on.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_validate, train_test_split
from sklearn.naive_bayes import GaussianNB

import polycal as pc
from polycal.integrations import CalibrationDisplay, CalibrationScorer

X, y = load_digits(return_X_y=True)
X_fit, X_new, y_fit, y_new = train_test_split(X, y, test_size=0.5, random_state=0)

# %%
# Naive Bayes is famous for being too sure of itself.

plain = GaussianNB().fit(X_fit, y_fit)
calibrated = pc.CalibratedClassifier(GaussianNB(), calibrator=pc.KernelCalibrator(), cv=5).fit(X_fit, y_fit)
for name, model in (("plain", plain), ("calibrated", calibrated)):
    proba = model.predict_proba(X_new)
    print(f"{name:11} log loss {pc.log_loss(y_new, proba):.3f}, accuracy {pc.accuracy(y_new, proba):.3f}")

# %%
# With ``cv=5`` the calibrator is fitted on predictions of five models, each for the fifth of the rows that it has not
# seen. ``cv="prefit"`` calibrates a classifier that is fitted already, with all rows given.

prefit = pc.CalibratedClassifier(plain, calibrator=pc.TemperatureScaling(), cv="prefit").fit(X_new, y_new)
print(prefit)

# %%
# Displays are made as scikit-learn's are, for any set of classes: is it one of 0, 2, 4, 6, 8?

even = [0, 2, 4, 6, 8]
figure, axes = plt.subplots(1, 2, figsize=(11, 5.4), layout="constrained")
for ax, model in zip(axes, (plain, calibrated), strict=True):
    CalibrationDisplay.from_estimator(model, X_new, y_new, subset=even, n_bins=8, ax=ax)

# %%
# And the error as a scorer, beside a proper score. Greater is better, so that errors are negative.

scoring = {"calibration": CalibrationScorer(), "log loss": "neg_log_loss"}
for name, model in (("plain", GaussianNB()), ("calibrated", pc.CalibratedClassifier(GaussianNB(), cv=3))):
    scores = cross_validate(model, X, y, cv=3, scoring=scoring)
    shown = {
        key.removeprefix("test_"): round(float(scores[key].mean()), 3) for key in scores if "test" in key
    }
    print(f"{name:11} {shown}")
