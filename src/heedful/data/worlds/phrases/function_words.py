"""The function words of the phrase world: one row is one meaning, English | French | Vietnamese.

A mark is a letter for one part of a meaning, the same in all three languages; words that share a part are
linked. So `những/d _ này/d` and `these/d` say that "these" is linked to both "những" and "này"; "_" is the
noun with its adjectives.
"""

# Weight and number | English | French | Vietnamese. Capitals inflect; "a,b": masculine, feminine.
DETERMINERS = """
12 s | the/d | LE/d | _
12 p | the/d | LE/d | những/d _
12 s | A/d | UN/d | một/d _
4 s | this/d | CE/d | _ này/d
3 p | these/d | CE/d | những/d _ này/d
4 s | that/d | CE/d _ -là/d | _ đó/d
3 p | those/d | CE/d _ -là/d | những/d _ đó/d
3 s | my/d | MON/d | _ của/d tôi/d
2 p | my/d | MON/d | những/d _ của/d tôi/d
2 s | your/d | TON/d | _ của/d bạn/d
1 p | your/d | TON/d | những/d _ của/d bạn/d
2 s | our/d | NOTRE/d | _ của/d chúng/d tôi/d
2 p | our/d | NOTRE/d | những/d _ của/d chúng/d tôi/d
3 s | every/d | chaque/d | mỗi/d _
3 s | another/d | UN/d autre/d | một/d _ khác/d
2 s | the/d first/o | LE/d premier,première/o | _ đầu/o tiên/o
1 s | the/d second/o | LE/d deuxième/o | _ thứ/o hai/o
1 s | the/d third/o | LE/d troisième/o | _ thứ/o ba/o
2 s | the/d last/o | LE/d dernier,dernière/o | _ cuối/o cùng/o
4 p | some/d | quelques/d | một/d số/d _
4 p | several/d | plusieurs/d | vài/d _
4 p | many/d | beaucoup/d DE/d | nhiều/d _
3 p | all/o the/d | tous,toutes/o LE/d | tất/o cả/o những/d _
2 p | the/d other/o | LE/d autres/o | những/d _ khác/o
8 s | OWN/d | SON/d | _ của/d mình/d
6 p | OWN/d | SON/d | những/d _ của/d mình/d
"""
# With "#" for a number: "these two cats" and the like.
NUMBERED_DETERMINERS = """
1 p | #/m | #/m | #/m _
1 p | these/d #/m | CE/d #/m | #/m _ này/d
1 p | those/d #/m | CE/d #/m _ -là/d | #/m _ đó/d
1 p | my/d #/m | MON/d #/m | #/m _ của/d tôi/d
1 p | OWN/d #/m | SON/d #/m | #/m _ của/d mình/d
"""
NUMBERS = """two deux hai; three trois ba; four quatre bốn; five cinq năm; six six sáu; seven sept bảy;
eight huit tám; nine neuf chín; ten dix mười; eleven onze mười_một; twelve douze mười_hai;
fifteen quinze mười_lăm; twenty vingt hai_mươi; thirty trente ba_mươi; fifty cinquante năm_mươi"""
# The determiner of "horse" in "the king 's horse": none ('s makes it definite), le/la/les, none or những.
POSSESSED_DETERMINERS = """
0 s | | LE/d | _
0 p | | LE/d | những/d _
"""

# Name, and tags of the nouns it is used with. Those at the end belong to verbs ("@talk") or to "'s".
PREPOSITIONS = """
in I | in | dans | trong
near LP | near | près de | gần
behind LP | behind | derrière | phía sau
before LP | in front of | devant | phía trước
beside LP | next to | à côté de | bên cạnh
far L | far from | loin de | cách xa
around L | around | autour de | xung quanh
on S | on | sur | trên
under U | under | sous | dưới
with P | with | avec | với
for P | for | pour | cho
toward L | toward | vers | về phía
through I | through | à travers | xuyên qua
from D | from | de | từ
to D | to | à | đến
@talk | to | à | với
@think | of | à | về
@answer | | à |
@dream | of | de | về
@need | | de |
none | | |
of | 's | de | của
"""
PLACE_PREPOSITIONS = ("in", "near", "behind", "before", "beside", "far", "around", "on", "under")
MOTION_PREPOSITIONS = {"m": ("toward", "through"), "f": ("from",), "t": ("to",)}
COMPANION_PREPOSITIONS = ("with", "for")
PRONOUNS = """
i | je | tôi | me | me
you | tu | bạn | you | te
he | il | anh ấy | him | le
she | elle | cô ấy | her | la
we | nous | chúng tôi | us | nous
they | ils | họ | them | les
"""
FREQUENCY = "often | souvent | thường xuyên; always | toujours | luôn luôn; rarely | rarement | hiếm khi"
DEGREES = "very | très | rất; too | trop | quá"
MANNERS = """
quietly | silencieusement | lặng lẽ; slowly | lentement | chậm rãi;
quickly | rapidement | nhanh chóng; carefully | prudemment | cẩn thận; happily | joyeusement | vui vẻ;
here | ici | ở đây; there | là-bas | ở đó"""
TIMES = """
0 | now | maintenant | bây giờ
0 | today | aujourd'hui | hôm nay
0 | every/a day/b | chaque/a jour/b | mỗi/a ngày/b
0 | this/a week/b | cette/a semaine/b | tuần/b này/a
1 | yesterday | hier | hôm qua
1 | last/a night/b | hier/a soir/b | tối/b qua/a
1 | last/a year/b | l'/L année/b dernière/a | năm/b ngoái/a
2 | tomorrow | demain | ngày mai
2 | tonight | ce soir | tối nay
2 | next/a week/b | la/L semaine/b prochaine/a | tuần/b sau/a
"""
# The tenses (present 0, past 1, future 2) of the clauses before and after it, where the three languages
# agree on them: after "quand" or "si" English needs another tense than French in the past and future.
CONJUNCTIONS = """
00 11 22 10 02 12 | , and | , et | , và
00 11 22 01 10 02 12 | , but | , mais | , nhưng
00 11 22 10 02 12 | , so | , donc | , nên
00 11 22 | , then | , puis | , rồi
00 11 22 01 02 20 21 | because | parce que | vì
00 | when | quand | khi
00 | while | pendant que | trong khi
00 | whenever | chaque fois que | mỗi khi
00 20 | if | si | nếu
00 20 | even if | même si | dù
"""
# The comma after "yesterday", "and" inside a clause, and "that" for a missing subject, a missing object.
OTHER_WORDS = """
, | , | ,
and | et | và
that | qui | mà
that | que | mà
"""
