"""The first minute: one command, a server, three learners that have learned, and a summary."""

from typer.testing import CliRunner

from feedrank.demo import app


def test_the_demo_serves_teaches_and_says_what_to_look_at(tmp_path):
    store = f"sqlite:{tmp_path / 'demo.db'}"
    arguments = ["--no-browser", "--port", "0", "--visitors", "30", "--rate", "1000", "--store", store]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "Open http://127.0.0.1:" in result.output
    assert "demo-mail: 10 messages" in result.output
    assert "demo-shop: 10 pages" in result.output
    again = CliRunner().invoke(app, arguments)
    assert "demo-mail: 20 messages" in again.output


def test_a_port_that_is_taken_is_one_line(tmp_path):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(
            app, ["--no-browser", "--port", port, "--store", f"sqlite:{tmp_path}/d.db"]
        )
    assert result.exit_code == 1
    assert "Traceback" not in result.output
