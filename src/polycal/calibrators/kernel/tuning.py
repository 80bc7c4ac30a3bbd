"""The tuned numbers of the kernel calibrator, all in one place: they were chosen together, on other data."""

import numpy as np

from polycal.calibrators.optimise import Effort

# The baseline. A weak prior on its three numbers (log 1/T, and the log odds of the background and of its uniform
# part): centre, and width. It counts as one row, so it matters for a handful of rows only.
PRIOR_CENTRE = np.array([0.0, -5.0, 0.0])
PRIOR_WIDTH = np.array([1.0, 8.0, 3.0])
# Where the baseline's curve may bend.
KNOTS = (0.5, 0.2, 0.05, 0.01, 1e-3, 1e-4)
# Numbers fitted before the kernel: a sample of n rows flatters each by about 1/n in log loss.
BASELINE_NUMBERS = 3 + len(KNOTS)

# Features. With more classes than this, lower probabilities are left out for speed.
MANY_CLASSES = 512
# Likeness to landmarks does not tell smaller probabilities apart.
LANDMARK_FLOOR = 1e-10
# The scale of likeness, in units of the median distance: landmarks see a neighbourhood, not all rows.
LANDMARK_WIDTH = 0.1**0.5
# More landmarks gain little; with many classes, predicting would be slow; and the features of all rows must fit into
# memory. With more classes than the last number, there would be too few landmarks for each to be worth the work.
MOST_LANDMARKS, MOST_NUMBERS, MOST_CELLS, LANDMARK_CLASSES = 1000, 60_000, 1 << 26, 70
# So many show whether more of them could gain.
FEW_LANDMARKS = 300
# Relative penalty of likeness.
LANDMARK_PENALTY = 0.3

# The regression. Stopping early does no harm on held-out rows: what is left to gain is mostly noise.
EFFORT = Effort(tolerance=1e-4, max_steps=12)
# With a smaller part of the classes likely, sparse products are faster than dense ones.
SPARSE = 0.15

# Multiplications of a class's probability with those of all, over all rows, up to which every fold is held out while
# models are chosen; with more, one is, and every so manieth penalty is tried. Few rows are worth more work.
MUCH_WORK, MUCH_WORK_OF_FEW, STRIDE = 1 << 23, 1 << 28, 2

# The selection. From penalty to penalty the solutions differ enough to matter, and mixing fills the gaps.
PENALTIES = tuple(0.1 * 0.25**j for j in range(12))
# Besides the best mixing, parts of it: bolder models may win by luck, or cost accuracy.
PARTS = (1.0, 0.5, 0.25)
# The path goes so far at least, and ends after so many penalties in a row that bring nothing.
AT_LEAST, PATIENCE = 4, 2
# Where the best penalty for other features is known, it begins so many above; where work is much, at this one, and
# larger ones are tried only if that is the best.
ABOVE, MIDDLE = 2, 4
# Where one fold chose, so many penalties before its best are looked at again with the others.
LOOK_BACK = 2
# Where work is much, other folds begin so many penalties before the last.
LAST_PENALTIES = 3
# Other features, and a smaller penalty, must gain this much: smaller differences are the luck of the search.
LEAST_GAIN, STEP_GAIN = 0.002, 0.0005
# And other features so many standard errors: the best of a whole path is held against the best before.
ERRORS = 2.0
# Where one fold is tried first, so many of its own before the others follow: half of that above would be as much gain.
SCREEN_ERRORS = 1.5
# A model must not lose more accuracy than this against the input, with half a standard error to spare.
ACCURACY_LOSS = 0.003
# A background of less weight hides nothing that matters.
HIDING = 1e-3
# Likeness is tried where classes have this many rows each, and all there is where a penalty as small as this is best.
MANY_ROWS, SMALL_PENALTY = 100, 1e-4
# With more classes than this, matrix scaling is slow.
MATRIX_CLASSES = 255
# Every so manieth of its penalties is tried, with so much effort.
MATRIX_STRIDE, MATRIX_EFFORT = 2, Effort(tolerance=1e-4, max_steps=20)

# With so many probabilities the members of the pool are fitted without each fold side by side.
MANY_CELLS = 1 << 17
# The pool, for few rows. Widths of the priors of vector scaling: log slope, a class's own, its shift; and the centre
# and width of the log odds of its background. Log slopes to begin with.
SLOPE, CLASS_SLOPE, SHIFT, ODDS, ODDS_WIDTH = 1.0, 0.3, 1.0, -5.0, 2.0
SLOPES = (0.0, -1.5)
# Distances between its predictions multiply what a search leaves to be found.
EXACT = 1e-14
# Rows that the prior of the shares counts for, and the weights in it of temperature and vector scaling up to so many
# rows, which fall in proportion beyond, and of rows nearby; the rest is the kernel's.
PRIOR_ROWS, PRIOR_SHARES, EVEN_ROWS = 5.0, (0.1, 0.25, 0.4), 100.0
# Rows nearby: widths as parts of the median distance, and the numbers of rows that vector scaling counts for beside
# them, with SCARCE_ROWS rows or more. A smaller distance is rounding.
NEAR_WIDTHS, NEAR_ROWS = (0.0625, 0.125, 0.25, 0.5, 1.0), (0.5, 2.0, 8.0, 32.0)
SCARCE_ROWS, LEAST_UNIT = 50.0, 1e-3
# Half a row has any class for its label, up to so many rows; less, with their square, beyond. How many probabilities it
# is made of.
SURPRISES, SURPRISED_ROWS, SURPRISING = 0.5, 200.0, 1 << 15
# The part of the geometric mean; smaller probabilities count as this.
GEOMETRIC, POOL_FLOOR = 0.5, 1e-12
# Members of a smaller share are left out; shares have so many digits.
NEGLIGIBLE, SHARE_DIGITS = 0.01, 4
# Parts of the pool that are tried, and the standard errors that are taken off its gain: more where the kernel's own
# guard finds that the input is enough.
PARTS_OF_POOL = (0.01, 0.018, 0.033, 0.06, 0.11, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
POOL_ERRORS, DOUBTFUL_ERRORS = 0.65, 1.15
# With more rows than this the kernel decides alone, and its baseline is fitted once for all folds.
FEW_ROWS = 2000

# Lots make folds even enough that have so many rows.
FOLD_ROWS = 100
# More rows: the model is fitted from the one before until there are so many times the rows of the last search; fewer
# where a pool predicts, whose shares follow few rows closely.
SEARCH_AGAIN, SEARCH_POOL_AGAIN = 1.5, 1.15
# Or until there are nearly as many rows, up to this factor, as would show the gain of another kind of model; with so
# many times the rows of the last search at least.
NEARLY_SHOWN, WORTH_A_SEARCH = 1.25, 1.05
# Models that are nearly fitted need few steps.
RENEWAL = Effort(tolerance=1e-4, max_steps=3)

# Rows that are alike. Smaller probabilities are not told apart. There are so many groups a fold at least.
LIKE_FLOOR, LIKE_GROUPS = 1e-6, 2
# With more multiplications than this, distances are taken along so many directions.
MANY_DISTANCES, LIKE_DIRECTIONS = 1 << 30, 16
# Held out together they must cost so much more loss, in standard errors and as a part of it.
LIKE_ERRORS, LIKE_GAP = 1.5, 0.1
# A row's nearest has another label so many times as often as the baseline errs, at most.
DIFFERING = 0.6
# Where each row comes with one or two copies, there are so many groups for each row, at least.
COPIED = 0.3
# Copies leave so little of the gain, and so little of what surprises a model has a nearest row of another label.
COPIES_LEFT, COPIES_ALONE = 0.3, 0.25
# Batches are looked for among so many rows; in so many groups more than labels, or twice as many.
BATCHED_ROWS, MORE_GROUPS = 200, 8
# Batches leave so little of the gain, and so little of what surprises; or so many times what there is of such rows.
BATCHES_LEFT, BATCHES_ALONE, MORE_ALONE = 0.2, 0.1, 1.3
# They may leave so much where hardly anything is surprising beside its nearest row.
SHARED_LEFT, HARDLY_ALONE = 0.4, 0.03
# Larger groups must leave less than this part of what smaller ones do.
FAR_LESS = 0.5
# Groups of so many rows at most, on average, are batches whatever they leave, where this part of the rows is so many
# times nearer to one of its own than to any other, and the baseline is right so often.
DENSE_ROWS, MOST, APART, MOSTLY_RIGHT = 100.0, 0.85, 2.5, 0.5
