"""Export to ONNX with attention weights as outputs.

`recurrent.py` replaces what torch's exporter cannot trace, `graphs.py` are the modules that are exported, `export.py`
writes the folder, `greedy.py` runs it with NumPy and onnxruntime alone, `compare.py` checks that both compute the same.
"""
