"""The launch-overhead study: what launches, barriers and loads cost on this machine, and searches.

`run.take` measures, `document.compose` reads what was measured and says what it means, and
`report.render` puts both into files' text. Only `plots` needs Matplotlib, and only it imports it.
"""
