"""What `feedrank serve` says first: where it is, on which kernel, and what a beginner may do."""

from feedrank.learners import kernel


def test_the_first_line_names_the_kernel_and_an_empty_store_what_to_do_first(start):
    one = start()
    assert f"{kernel.NAME} kernel" in one.line
    with one.client() as client:
        client.put("/v1/learners/a", json={"task": "multiclass"})
    one.process.terminate()
    more = one.process.stdout.read()  # to its end
    assert f"feedrank start FILE --server {one.url}`" in more
    assert "feedrank demo" in more
    again = start(FEEDRANK_KERNEL="numpy")
    assert "numpy kernel" in again.line
    again.process.terminate()
    assert again.process.stdout.read() == ""
