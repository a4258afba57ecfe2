"""What `feedrank serve` says first: where it is, on which kernel, and what a beginner may do."""

from feedrank.learners import kernel


def rest_of(process):
    """What it says until its end, which is asked for."""
    process.process.terminate()
    with process.process.stdout as lines:
        said = lines.read()
    process.process.wait(600)
    return said


def test_the_first_line_names_the_kernel_and_an_empty_store_what_to_do_first(start):
    one = start()
    assert f"{kernel.NAME} kernel" in one.line
    with one.client() as client:
        client.put("/v1/learners/a", json={"task": "multiclass"})
    said = rest_of(one)
    assert f"feedrank start FILE --server {one.url}`" in said
    assert "feedrank demo" in said
    again = start(FEEDRANK_KERNEL="numpy")
    assert "numpy kernel" in again.line
    assert rest_of(again) == ""
