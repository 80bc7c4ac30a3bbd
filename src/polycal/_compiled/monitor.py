"""Passes of the monitor: what small bettors give each label, fortunes row by row, and sums of questions."""

import numpy as np

from polycal._compiled import compiled

# A fortune that has grown to this is not counted further; giving money away is always allowed.
_MOST = 1e100


@compiled
def tempered(logs, labels, inverse, backgrounds, out):
    """Log probability of each label under ``(1 - e) softmax(logs / T) + e / k``, for every 1/T and every e."""
    n, k = logs.shape
    if labels.size != n or out.shape != (n, inverse.size * backgrounds.size):
        raise ValueError("the output does not fit the rows and bets")
    for i in range(n):
        top = logs[i].max()
        at_label = logs[i, labels[i]] - top
        for b in range(inverse.size):
            total = 0.0
            for j in range(k):
                total += np.exp(inverse[b] * (logs[i, j] - top))
            chance = np.exp(inverse[b] * at_label) / total
            for e in range(backgrounds.size):
                mixed = (1.0 - backgrounds[e]) * chance + backgrounds[e] / k
                out[i, b * backgrounds.size + e] = np.log(mixed)


@compiled
def shifted(proba, cells, labels, prior, decay, sums, out):
    """Log probability of each label after every class was shifted by how often it came before, row by row.

    ``sums[c, 0, j]`` counts label j on earlier rows of cell c, ``sums[c, 1, j]`` adds up its probability there; older
    rows of a cell count less by the factor ``decay`` with each new one.
    """
    n, k = proba.shape
    if labels.size != n or cells.size != n or out.size != n or sums.shape[1] != 2 or sums.shape[2] != k:
        raise ValueError("the sums do not fit the rows")
    for i in range(n):
        c, y = cells[i], labels[i]
        if c < 0 or c >= sums.shape[0]:
            raise ValueError("a row is of no cell")
        total = 0.0
        for j in range(k):
            total += proba[i, j] * (sums[c, 0, j] + prior) / (sums[c, 1, j] + prior)
        out[i] = np.log(proba[i, y] * (sums[c, 0, y] + prior) / (sums[c, 1, y] + prior) / total)
        for j in range(k):
            sums[c, 0, j] *= decay
            sums[c, 1, j] = decay * sums[c, 1, j] + proba[i, j]
        sums[c, 0, y] += 1.0


@compiled
def invest(log_gain, log_stake, log_weight, rows, log_fortune, log_won, start, out):
    """Follow fortunes over rows: before each, bettor j gets new money ``stake * weight[j]`` and then bets everything.

    ``log_won`` is what one coin became since row ``start``, where it would have become most; ``out`` the log of all.
    """
    n, m = log_gain.shape
    if log_stake.size != n or rows.size != n or out.size != n or log_fortune.size != m:
        raise ValueError("the fortunes do not fit the bets")
    for i in range(n):
        most = -np.inf
        for j in range(m):
            new = log_stake[i] + log_weight[j]
            held = log_fortune[j]
            high, low = max(new, held), min(new, held)
            log_fortune[j] = high + np.log1p(np.exp(low - high)) + log_gain[i, j]
            if log_won[j] < 0.0:
                log_won[j] = 0.0
                start[j] = rows[i]
            log_won[j] += log_gain[i, j]
            most = max(most, log_fortune[j])
        total = 0.0
        for j in range(m):
            total += np.exp(log_fortune[j] - most)
        out[i] = most + np.log(total)


@compiled
def _shape(w, p):
    """The functions of a question's probability that residuals are weighed by: 1, p and 1 - p."""
    if w == 0:
        return 1.0
    return p if w == 1 else 1.0 - p


@compiled
def bet_on_questions(predicted, hits, tolerance, shares, money, rows, fortune, won, start, out):
    """Follow the fortunes of bets ``1 + share (x - tolerance)`` on the residuals x of questions.

    Of every question there are three functions (`_shape`), two signs and some shares: ``fortune`` is of shape
    (questions, 3, 2, shares), and each of a question's bets gets the ``money`` of the row first. ``hits`` is 1 for yes,
    0 for no, and negative where a row does not count.
    """
    n, n_questions = predicted.shape
    if (
        money.shape != hits.shape
        or hits.shape != predicted.shape
        or fortune.shape != (n_questions, 3, 2, shares.size)
    ):
        raise ValueError("the fortunes do not fit the questions")
    for i in range(n):
        total = 0.0
        for q in range(n_questions):
            new = money[i, q]
            counts = hits[i, q] >= 0
            p = predicted[i, q]
            residual = hits[i, q] - p
            for w in range(3):
                x = _shape(w, p) * residual
                for s in range(2):
                    signed = (x if s == 0 else -x) - tolerance
                    for b in range(shares.size):
                        factor = 1.0 + shares[b] * signed if counts else 1.0
                        held = min((fortune[q, w, s, b] + new) * factor, _MOST)
                        fortune[q, w, s, b] = held
                        total += held
                        if won[q, w, s, b] < 1.0:
                            won[q, w, s, b] = 1.0
                            start[q, w, s, b] = rows[i]
                        won[q, w, s, b] = min(won[q, w, s, b] * factor, _MOST)
        out[i] = total


@compiled
def tally_questions(predicted, hits, count, sums, bins):
    """Add rows to the sums of questions.

    ``sums[q, w]`` are the sum of ``x = shape(p) (hit - p)`` and that of ``(x - mean of the rows before)^2``, where the
    mean is moved to the nearest number that x can be; ``bins[q, b]`` are rows, sum of
    predictions and number of hits in bins of equal width.
    """
    n, n_questions = predicted.shape
    n_bins = bins.shape[1]
    if hits.shape != predicted.shape or sums.shape != (n_questions, 3, 2) or n_bins == 0:
        raise ValueError("the sums do not fit the questions")
    for i in range(n):
        for q in range(n_questions):
            if hits[i, q] < 0:
                continue
            p = predicted[i, q]
            for w in range(3):
                size = _shape(w, p)
                x = size * (hits[i, q] - p)
                # Within what x can be, for then it is at most 1 away.
                expected = min(max(sums[q, w, 0] / (count[q] + 1.0), -size * p), size * (1.0 - p))
                off = x - expected
                sums[q, w, 0] += x
                sums[q, w, 1] += off * off
            count[q] += 1.0
            b = min(max(int(p * n_bins), 0), n_bins - 1)
            bins[q, b, 0] += 1.0
            bins[q, b, 1] += p
            bins[q, b, 2] += hits[i, q]
