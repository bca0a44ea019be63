"""The part of the book that runs in the browser: Pyodide and JupyterLite, below the built book, from no other host."""
