"""Bulk use: any model over any number of files, one output file per part, resumed where it was interrupted.

`job.run_part` is the pure unit of work: it needs a job and a part, and writes one file as a whole. `local.py` runs
parts in processes of this machine, `integrations/ray_batch.py` on a Ray cluster.
"""
