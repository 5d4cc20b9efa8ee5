"""An attack on the library: hostile fits, files, signals and threads; every run ends well or with an error of ours."""
