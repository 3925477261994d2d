"""Latency and workload under the arrivals of a log: counts of reads by time, instead of mean rates."""
