"""``python -m persistent_bfs``: the command line."""

from persistent_bfs.cli import main

if __name__ == "__main__":
    main(prog_name="persistent-bfs")
