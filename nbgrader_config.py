"""Where nbgrader finds the course: directories, policies and plug-ins. The logic lives in grader/."""

import os
import sys
from pathlib import Path

c = get_config()  # noqa: F821 - traitlets provides it

root = Path(__file__).resolve().parent
var = root / "grader" / "var"
exchange = var / "exchange"
exchange.mkdir(parents=True, exist_ok=True)

# nbgrader starts `alembic` by its bare name; it stands beside this interpreter, whatever PATH the caller had.
programs = str(Path(sys.executable).parent)
if programs not in os.environ.get("PATH", "").split(os.pathsep):
    os.environ["PATH"] = os.pathsep.join(filter(None, [programs, os.environ.get("PATH")]))

c.CourseDirectory.course_id = "ffn"
c.CourseDirectory.root = str(root)
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.CourseDirectory.source_with_tests_directory = "grader/var/source_with_tests"
c.CourseDirectory.submitted_directory = "grader/var/submitted"
c.CourseDirectory.autograded_directory = "grader/var/autograded"
c.CourseDirectory.feedback_directory = "grader/var/feedback"
c.CourseDirectory.db_url = f"sqlite:///{var / 'gradebook.db'}"
c.Exchange.root = str(exchange)
c.NbGrader.logfile = str(var / "nbgrader.log")

# A learner who loops for ever loses that cell, not the batch.
c.ExecutePreprocessor.timeout = 30
c.Execute.timeout = 30
# A kernel warns about its own transport on this terminal; errors still show.
c.Execute.extra_arguments = ["--IPKernelApp.log_level=40"]
# A test cell that a learner deleted comes back, and is run.
c.OverwriteCells.add_missing_cells = True
# An answer that lets the course's own module do the step gets the visible marks at most.
c.Autograde.autograde_preprocessors = [
    "nbgrader.preprocessors.Execute",
    "grader.withhold.Withhold",
    "nbgrader.preprocessors.IgnorePattern",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
# Feedback shows neither hidden tests nor the lines of code around the one that failed.
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "grader.hide_tests.HideTests",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
