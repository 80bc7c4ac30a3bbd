import numpy as np

import polycal as pc


def test_class_names_are_text_never_markup():
    names = ["[bold red]x[/]", "[/oops]", "ünïcode 🐈"]
    rng = np.random.default_rng(0)
    audit = pc.audit(rng.integers(0, 3, 50), rng.dirichlet(np.ones(3), 50), class_names=names)
    text = str(audit)
    assert all(name in text for name in names)


def test_no_group_table_without_groups():
    assert "your groups" not in str(pc.audit([0, 1], [0.2, 0.7]))
    assert "your groups" in str(pc.audit([0, 1], [0.2, 0.7], groups={"g": [0]}))
