"""Files read without trust and written in one piece. No pickle, ever."""
