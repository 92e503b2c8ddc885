"""Groups that have lost voters.

Map:    arbiter.py         configurations that may be in force, and leaders without a majority
        grant_progress.py  the steps of a grant to such a leader: table of transitions
        member_reports.py  replicas that cannot vote or take nothing; brokers without contact
        sides.py           voters that do not hear each other, and the side that continues
        promotion.py       the observer that votes meanwhile
        survivors.py       the remaining logs of a group that cannot continue"""
