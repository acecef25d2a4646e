"""The experiments of the paper, each run by one command: ``smartcpd paper NAME``.

Pu, Ibrahim, Fu and Hong, *Stochastic Mirror Descent for Low-Rank Tensor Decomposition Under
Non-Euclidean Losses*, IEEE Transactions on Signal Processing 70, 2022.
"""
