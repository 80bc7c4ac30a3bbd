import polycal as pc


def test_the_worst_is_a_question_where_one_was_searched():
    made = pc.datasets.make_shifted_subset(1000, 5, error=0.2, random_state=0)
    audit = pc.audit(made.labels, made.proba)
    assert audit.worst.is_question
    assert any(not finding.is_question for finding in audit.findings)
    kernel = pc.audit(made.labels, made.proba, notions=(), auditors={"kernel": pc.KernelAuditor()})
    assert not kernel.worst.is_question
    assert kernel.worst.source == "kernel"


def test_findings_say_what_they_ask():
    made = pc.datasets.make_shifted_subset(1000, 5, error=0.2, random_state=0)
    finding = next(f for f in pc.audit(made.labels, made.proba).findings if f.source == "subset-smooth")
    assert finding.question == finding.witness.describe()
    assert finding.question.startswith("is it ")
