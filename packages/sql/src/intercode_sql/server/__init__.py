"""The engine ``mysql``: a MySQL or MariaDB server, either private or given by its address.

It uses the pure Python part of MySQL Connector/Python, because the values and texts of the
published episodes come from that library.
"""
