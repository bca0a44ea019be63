"""Where nbgrader finds the course: directories, policies and plug-ins. The logic lives in grader/."""

import os
import sys
from importlib.util import find_spec
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

# The course's own engine grades and records; nbgrader's preprocessors behind it only look after what is shown.
c.Autograde.exporter_class = "grader.engine.preprocess.SubmissionExporter"
c.Autograde.sanitize_preprocessors = ["grader.engine.preprocess.EngineSanitize"]
c.Autograde.autograde_preprocessors = [
    "grader.engine.preprocess.EngineExecute",
    "nbgrader.preprocessors.IgnorePattern",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.CheckCellMetadata",
]
# What handing in late costs, by a rule that takes nothing off until it is declared; `grader.policy.LateRule` says what
# each setting means, and `grader due` reads and shows times in this zone. For a tenth of the score a day, for example:
#     c.LatePolicy.grace_minutes = 15
#     c.LatePolicy.per_day = 0.1
#     c.LatePolicy.floor = 0.5
c.AssignLatePenalties.plugin_class = "grader.late.LatePolicy"
c.LatePolicy.timezone = "UTC"
# Feedback shows neither hidden tests nor the lines of code around the one that failed. The page is grader.feedback's,
# whether `grader feedback`, nbgrader or formgrader's button writes it.
c.GenerateFeedback.exporter_class = "grader.feedback.FeedbackExporter"
c.GenerateFeedback.preprocessors = ["grader.feedback.Grades", "grader.hide_tests.HideTests"]
# nbgrader's pages show what learners wrote, and the instructor is signed in there: nothing of it may run.
# The templates of nbgrader leave Markdown as it is even so; hence the filters.
c.HTMLExporter.sanitize_html = True
c.HTMLExporter.filters = {
    "markdown2html": "grader.safe_html.safe_markdown",
    "clean_html": "grader.safe_html.safe_html",
    "formula_script": "grader.safe_html.formula_script",
}
# The course's templates come first: formulas need no script from another host.
pages = Path(find_spec("nbgrader").origin).parent / "server_extensions" / "formgrader" / "templates"
c.HTMLExporter.extra_template_basedirs = [str(root / "grader" / "templates"), str(pages)]
