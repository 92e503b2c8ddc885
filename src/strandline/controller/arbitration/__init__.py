"""Groups that have lost voters.

Map:    arbiter.py    who leads next after the quorum is lost
        sides.py      voters that do not hear each other, and which side continues
        promotion.py  which observer votes meanwhile
        survivors.py  what is left of a group that cannot continue
"""
