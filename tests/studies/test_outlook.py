from dissensus.studies import STUDIES
from dissensus.studies._outlook import outlook_of
from dissensus.studies._study import Request
from study_rows import record


def test_the_outlook_counts_and_estimates():
    study = STUDIES["homophilic"]
    plan = study.plan(Request(models=("bimp", "gcn", "gat"), datasets=("karate",), splits=(1, 2, 3)))
    bimp, gcn = plan.configs[0], plan.configs[3]
    stored = [record(bimp, seconds=10.0), record(plan.configs[1], seconds=20.0), record(gcn, status="failed")]
    found = outlook_of(study, plan, {found.key: found for found in stored})
    seen = {group.group[1]: (group.done, group.failed, group.missing, group.seconds) for group in found.groups}
    # gcn and gat have no time of their own yet, so the mean of the study is taken.
    assert seen == {"bimp": (2, 0, 1, 15.0), "gcn": (0, 1, 2, 30.0), "gat": (0, 0, 3, 45.0)}
    assert found.seconds == 90.0
    nothing = outlook_of(study, plan, {})
    assert [group.seconds for group in nothing.groups] == [None] * 3
    assert nothing.seconds is None


def test_every_study_has_a_table_of_its_runs():
    for name, study in STUDIES.items():
        assert outlook_of(study, study.plan(Request(quick=True)), {}).table().rows[-1][0] == "all", name
