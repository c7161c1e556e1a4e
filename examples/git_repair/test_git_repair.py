from intercode.evaluation import check_dataset


def test_git_repair() -> None:
    check_dataset(__file__)
