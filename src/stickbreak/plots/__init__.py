"""Pictures of fitted models, ``model.plot.<name>(...)``.  They need matplotlib: pip install stickbreak[plot]."""
