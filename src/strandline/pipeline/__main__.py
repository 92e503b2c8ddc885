"""`python -m strandline.pipeline`, and the main file for spark-submit.

Why:    a cluster runs the very commands that `strandline pipeline` runs here."""

from strandline.pipeline.commands.app import main

if __name__ == "__main__":
    main()
