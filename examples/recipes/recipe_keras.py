"""
Keras
=====

Keras 3 runs on several backends; here on PyTorch (``KERAS_BACKEND=torch``). ``predict`` gives NumPy arrays, which
polycal takes as they are.
"""

import keras
from sklearn.datasets import make_classification

import polycal as pc

keras.utils.set_random_seed(0)
X, y = make_classification(6000, 20, n_informative=8, n_classes=4, flip_y=0.2, random_state=0)
fit, cal, new = slice(0, 2000), slice(2000, 4000), slice(4000, 6000)

# %%
# A small network whose last layer gives probabilities.
network = keras.Sequential([keras.layers.Dense(64, "relu"), keras.layers.Dense(4, "softmax")])
network.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy")
network.fit(X[fit], y[fit], epochs=60, batch_size=250, verbose=0)
proba_cal, proba_new = network.predict(X[cal], verbose=0), network.predict(X[new], verbose=0)

# %%
# Find, prove, repair.
audit = pc.audit(y[new], proba_new)
print(audit.worst.question, f"off by at least {audit.worst.at_least:.3f}")
calibrator = pc.KernelCalibrator().fit(proba_cal, y[cal])
before, after = pc.log_loss(y[new], proba_new), pc.log_loss(y[new], calibrator.predict_proba(proba_new))
print(f"log loss {before:.3f} -> {after:.3f}")
