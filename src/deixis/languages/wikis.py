"""Wikis: the Wikipedias by language, and what their pages call redirects and disambiguation pages."""

from __future__ import annotations

import re

__all__ = ["BRACKETED", "DISAMBIGUATION", "LANGUAGES", "REDIRECT"]

# Wikipedias by language: [[fr:Chat]] is shown beside the page, [[:fr:Chat]] in its text.
_LANGUAGES = (
    "aa ab ace ady af ak als alt am ami an ang ann anp ar arc ary arz as ast atj av avk awa ay az azb ba ban bar "
    "bat-smg bbc bcl bdr be be-tarask be-x-old bew bg bh bi bjn blk bm bn bo bpy br bs btm bug bxr ca cbk-zam cdo ce "
    "ceb ch cho chr chy ckb cmn co cr crh cs csb cu cv cy cz da dag de dga din diq dk dsb dtp dty dv dz ee egl el eml "
    "en eo epo es et eu ext fa fat ff fi fiu-vro fj fo fon fr frp frr fur fy ga gag gan gcr gd gl glk gn gom gor got "
    "gpe gsw gu guc gur guw gv ha hak haw he hi hif ho hr hsb ht hu hy hyw hz ia iba id ie ig igl ii ik ilo inh io is "
    "it iu ja jam jbo jp jv ka kaa kab kaj kbd kbp kcg kg kge ki kj kk kl km kn knc ko koi kr krc ks ksh ku kus kv kw "
    "ky la lad lb lbe lez lfn lg li lij lld lmo ln lo lrc lt ltg lv lzh mad mai map-bms mdf mg mh mhr mi min minnan mk "
    "ml mn mni mnw mo mr mrj ms mt mus mwl my myv mzn na nah nan nap nb nds nds-nl ne new ng nia nl nn no nov nqo nr "
    "nrm nso nupe nv ny oc olo om or os pa pag pam pap pcd pcm pdc pfl pi pih pl pms pnb pnt ps pt pwn qu rm rmy rn ro "
    "roa-rup roa-tara rsk ru rue rup rw sa sah sat sc scn sco sd se sg sgs sh shi shn shy si simple sk skr sl sm smn "
    "sn so sq sr srn ss st stq su sv sw szl szy ta tay tcy tdd te tet tg th ti tig tk tl tlh tly tn to tok tpi tr trv "
    "ts tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo vro wa war wo wuu xal xh xmf yi yo yue za zea zgh zh "
    "zh-cfr zh-classical zh-cn zh-min-nan zh-tw zh-yue zu"
)
LANGUAGES = frozenset(_LANGUAGES.split())

BRACKETED = ("(disambiguation)",)  # ends of titles of disambiguation pages
# the templates of pages that list the meanings of a name
DISAMBIGUATION = re.compile(
    r"\{\{\s*(?:template:|msg:)?(?:"
    r"(?:[\w -]*[ -]|tla|4la|3la)?disambig(?:uation)?"
    r"(?:[ -](?:page|cleanup|cleaned|geo|name|human|surname|ship|school)[\w -]*)?"
    r"|dab|geodis|hndis|hndisambig|[2-5](?:cc|la|lc)|lnd|numberdis|roaddis|mathdab|schooldis|shipindex|disamb|"
    r"begriffsklärung|homonymie|paronymie|desambiguación|desambiguação|desambig|desambigua|disambigua|"
    r"dp|doorverwijspagina|ujednoznacznienie|неоднозначность|багатозначність|пояснителна страница|"
    r"förgrening|gren|flertydig|peker|täsmennyssivu|rozcestník|egyért|dezambiguizare|anlam ayrımı|"
    r"曖昧さ回避|aimai|消歧义|disambig-geo|동음이의|توضيح|ابهام‌زدایی|פירושונים|trang định hướng|"
    r"nuozeimeibys|nūzeimeibys"
    r")\s*(?:\||\}\})|__DISAMBIG__",
    re.IGNORECASE,
)

# how a page says that it is a redirect
REDIRECT = re.compile(
    r"\s*#\s*(?:redirect(?:ion)?|weiterleitung|redirección|redireccion|redirecionamento|rinvia|doorverwijzing|"
    r"patrz|przekieruj|tam|перенаправление|перенапр|перенаправлення|виж|přesměruj|omdirigering|ohjaus|uudelleenohjaus|"
    r"yönlendirme|yönlendir|転送|リダイレクト|重定向|넘겨주기|تحويل|تغییر_مسیر|تغییرمسیر|הפניה|átirányítás|alih|lencong|"
    r"đổi|ανακατευθυνση|преусмери|preusmeri|ümber)\s*:?\s*\[\[([^\[\]\n|]*)",
    re.IGNORECASE,
)
