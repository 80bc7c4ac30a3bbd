import numpy as np

import polycal as pc


def test_hostile_names_are_escaped():
    names = ["<script>alert(1)</script>", "a&b", '"quoted"', "</table>"]
    rng = np.random.default_rng(0)
    audit = pc.audit(rng.integers(0, 4, 200), rng.dirichlet(np.ones(4), 200), class_names=names)
    page = audit._repr_html_()
    assert "<script>" not in page
    assert page.count("</table>") == 1
    assert page.startswith("<div>")
