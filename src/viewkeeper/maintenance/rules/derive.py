"""The rules of a view, from the verdicts on its references.

Deletions precede insertions, rematerializing precedes both. Rules with the same trigger and the same effect are one rule. A
view that can hold duplicates is kept by counting copies: one rule for each table adds and takes copies at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.algebra.nodes import InnerJoin, Scan
from viewkeeper.algebra.nullability import is_never_null
from viewkeeper.facts.declared import Declarations, Reliance
from viewkeeper.facts.safety.selects import Combined, Select, Selection, Unread, blocks, selects
from viewkeeper.facts.safety.verdicts import Place, Reference, ReferenceVerdict, ViewAnalysis
from viewkeeper.generated_names import state_relation
from viewkeeper.maintenance.plan import State
from viewkeeper.maintenance.rules.actions import Change, counted_rows, entering_rows, leaving_rows
from viewkeeper.maintenance.rules.block_sql import BlockWriter, all_in
from viewkeeper.maintenance.rules.decided import decided_by_view
from viewkeeper.maintenance.rules.rule import (
    Action,
    Certainty,
    Check,
    Effect,
    Rule,
    TransitionTable,
    Trigger,
)
from viewkeeper.maintenance.rules.rule_set import RuleSet
from viewkeeper.maintenance.rules.set_checks import Answer, adds_to_view, answer_if
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.rendering import alias, aliased, column, select_from
from viewkeeper.sql.statements import Operation

_KNOWN = "known"

_PARTS = (
    (State.DELETED, "del", Operation.DELETE),
    (State.OLD_UPDATED, "old_upd", Operation.UPDATE),
    (State.NEW_UPDATED, "new_upd", Operation.UPDATE),
    (State.INSERTED, "ins", Operation.INSERT),
)


def derive_rules(
    view: QualifiedName,
    stem: str,
    columns: tuple[str, ...],
    analysis: ViewAnalysis,
    declared: Declarations,
    rematerialized: frozenset[tuple[str, Operation]] = frozenset(),
) -> RuleSet:
    """The rules of a view, given what was found out about its query."""
    rules = RuleSet(view, stem, columns, analysis.selection, _never_null(columns, analysis.selection))
    unread = analysis.unread or _why_not_counted(analysis)
    if unread is not None:
        return replace(rules, unread=unread)
    derivation = _Derivation(rules, analysis, declared)
    found = derivation.counting_rules() if analysis.duplicates.possible else derivation.set_rules()
    return replace(rules, rules=_in_order(_rematerializing(rules, analysis, found, rematerialized)))


def _never_null(columns: tuple[str, ...], selection: Selection) -> frozenset[str]:
    """The columns of the view in which no select can give a NULL."""
    return frozenset(
        name
        for at, name in enumerate(columns)
        if all(
            is_never_null(
                select.items[at].expression, InnerJoin(select.block.tables, select.block.conditions)
            )
            for select in selects(selection)
        )
    )


def _why_not_counted(analysis: ViewAnalysis) -> str | None:
    """Copies are counted in a select, and in a UNION ALL of such."""
    if not analysis.duplicates.possible or _adds_up(analysis.selection):
        return None
    return "UNION ALL stands over a query that removes duplicates"


def _adds_up(selection: Selection) -> bool:
    match selection:
        case Combined(_, keeps_copies, left, right):
            return keeps_copies and _adds_up(left) and _adds_up(right)
        case Select(is_distinct=is_distinct):
            return not is_distinct
        case Unread():
            return False


@dataclass(frozen=True)
class _Derivation:
    rules: RuleSet
    analysis: ViewAnalysis
    declared: Declarations

    # -- views without duplicates

    def set_rules(self) -> list[Rule]:
        found: dict[tuple[str, str, Effect], Rule] = {}
        for verdict in self.analysis.references:
            reference = verdict.reference
            for part, word, operation in _PARTS:
                columns = _used_columns(reference) if operation is Operation.UPDATE else ()
                if operation is Operation.UPDATE and not columns:
                    continue
                rule = self._set_rule(verdict, part, word, operation, columns)
                key = (word, reference.scan.input.object_id, rule.effect)
                found[key] = _merged(found[key], rule) if key in found else rule
        return _with_distinct_names(list(found.values()))

    def _set_rule(
        self,
        verdict: ReferenceVerdict,
        part: State,
        word: str,
        operation: Operation,
        columns: tuple[str, ...],
    ) -> Rule:
        change = Change(verdict.reference, part)
        adds = adds_to_view(self.analysis.selection, verdict.reference.select)
        deletes = change.takes_away is adds
        action = self._deletion(verdict, change) if deletes else self._insertion(verdict, change)
        table = verdict.reference.scan.input
        return Rule(
            f"{word}_{table.name.relation_stem}_{self.rules.stem}",
            (Trigger(operation, table.name, table.object_id, columns),),
            Effect.DELETE if deletes else Effect.INSERT,
            (action,),
            reason=action.certainty.value if deletes else "",
            anew_in_the_paper=_anew_in_the_paper(verdict, [operation]),
        )

    def _deletion(self, verdict: ReferenceVerdict, change: Change) -> Action:
        writer, select = BlockWriter(), verdict.reference.select
        checks = self._stays_out(writer, select, has_it=not change.takes_away)
        if not change.takes_away:
            rows = entering_rows(writer, change, self.rules.columns)
            return self._action(writer, rows, Certainty.EXCLUDED, checks)
        was_in_view = self._is_alone and not any(each.is_negative for each in verdict.reference.path)
        if not verdict.decides_deletions:
            checks = [Check(self._now(writer, select), must_have=False), *checks]
            rows = leaving_rows(writer, change, self.rules.columns)
            found = self._action(writer, rows, Certainty.CHECKED, checks)
            return replace(found, was_in_view=was_in_view)
        decided = decided_by_view(verdict.reference, self.rules.columns, self.declared)
        if decided is None:
            is_blocked = verdict.reference.place is Place.NEGATIVE
            certainty = Certainty.BLOCKED if is_blocked else Certainty.BY_KEY
            rows = leaving_rows(writer, change, self.rules.columns)
            found = self._action(writer, rows, certainty, checks, verdict.deciding_keys)
            return replace(found, was_in_view=was_in_view)
        scan = verdict.reference.scan
        rows = writer.select(
            decided.columns, decided.block, lambda each: change.part if each == scan else State.NEW
        )
        columns = tuple(item.name for item in decided.columns)
        keys = verdict.deciding_keys
        if decided.key is not None:
            keys |= {Reliance(scan.input.object_id, decided.key.name)}
        found = self._action(writer, rows, Certainty.BY_THE_VIEW, checks, keys)
        return replace(found, columns=columns, matches_nulls=decided.key is not None, was_in_view=True)

    def _insertion(self, verdict: ReferenceVerdict, change: Change) -> Action:
        writer, select = BlockWriter(), verdict.reference.select
        checks = self._comes_in(writer, select, has_it=not change.takes_away)
        if change.takes_away:
            rows = leaving_rows(writer, change, self.rules.columns)
            checks = [Check(self._now(writer, select), must_have=False), *checks]
        else:
            rows = entering_rows(writer, change, self.rules.columns)
        if not self._is_alone or select.is_distinct:
            rows = rows.distinct()
        negations = sum(each.is_negative for each in verdict.reference.path)
        is_new = verdict.is_safe and self._is_alone and negations < 2
        checks = [*checks, Check(self._view_rows(writer, is_new), must_have=False, asks_view=True)]
        if not is_new:
            return self._action(writer, rows, Certainty.CHECKED, checks)
        return self._action(writer, rows, Certainty.BY_KEY, checks, verdict.keys_around | verdict.keys_inside)

    @property
    def _is_alone(self) -> bool:
        """Whether the view is one select, without a set operation."""
        return isinstance(self.analysis.selection, Select)

    def _action(
        self,
        writer: BlockWriter,
        rows: exp.Query,
        certainty: Certainty,
        checks: Iterable[Check],
        keys: frozenset[Reliance] = frozenset(),
    ) -> Action:
        relies_on = self.analysis.duplicates.relies_on | keys
        return Action(rows, self.rules.columns, writer.tables, certainty, tuple(checks), relies_on=relies_on)

    def _now(self, writer: BlockWriter, selection: Selection) -> exp.Query:
        return writer.selection(selection, self.rules.columns, all_in(State.NEW))

    def _view_rows(self, writer: BlockWriter, only_new: bool) -> exp.Select:
        """The view, or what the rules have put into it so far."""
        state = State.INSERTED if only_new else State.NEW
        name = state_relation(self.rules.stem, state.value) if only_new else self.rules.stem
        writer.tables[name] = TransitionTable(None, state)
        items = [alias(column(each, _KNOWN), each) for each in self.rules.columns]
        return select_from(aliased(name, _KNOWN), items)

    def _comes_in(self, writer: BlockWriter, select: Select, has_it: bool) -> list[Check]:
        """What the rest of a set operation must say for a row to be in the view."""
        answer = answer_if(self.analysis.selection, select, has_it)
        return self._checks(writer, answer, is_in=True)

    def _stays_out(self, writer: BlockWriter, select: Select, has_it: bool) -> list[Check]:
        answer = answer_if(self.analysis.selection, select, has_it)
        return self._checks(writer, answer, is_in=False)

    def _checks(self, writer: BlockWriter, answer: Answer, is_in: bool) -> list[Check]:
        if isinstance(answer, bool):
            return []
        return [Check(self._now(writer, answer.query), must_have=is_in is not answer.is_opposite)]

    # -- views with duplicates

    def counting_rules(self) -> list[Rule]:
        """One rule for each table; it goes through the references to the table in the order of the view's text."""
        rules: dict[str, Rule] = {}
        earlier: frozenset[Scan] = frozenset()
        for verdict in self.analysis.references:
            reference = verdict.reference
            table = reference.scan.input
            columns = _used_columns(reference)
            operations = [Operation.DELETE, Operation.INSERT, *([Operation.UPDATE] if columns else [])]
            rule = Rule(
                f"count_{table.name.relation_stem}_{self.rules.stem}",
                tuple(
                    Trigger(each, table.name, table.object_id, columns if each is Operation.UPDATE else ())
                    for each in operations
                ),
                Effect.RECOUNT,
                tuple(
                    self._counted(Change(reference, part), earlier) for part in (State.REMOVED, State.ADDED)
                ),
                reason=Certainty.COUNTED.value,
                anew_in_the_paper=_anew_in_the_paper(verdict, operations),
            )
            earlier |= {reference.scan}
            known = rules.get(table.object_id)
            rules[table.object_id] = rule if known is None else _merged(known, rule)
        return list(rules.values())

    def _counted(self, change: Change, earlier: frozenset[Scan]) -> Action:
        writer = BlockWriter()
        rows = counted_rows(writer, change, self.rules.columns, earlier)
        sign = -1 if change.takes_away else 1
        return Action(rows, self.rules.columns, writer.tables, Certainty.COUNTED, sign=sign)


def _used_columns(reference: Reference) -> tuple[str, ...]:
    """The columns of the reference that the view's query reads: only when one of them changes does the view."""
    alias = reference.scan.alias
    written = [item.expression for item in reference.select.items]
    written += [each for block in blocks(reference.select.block) for each in block.conditions]
    used = {
        found.name.lower() for each in written for found in each.find_all(exp.Column) if found.table == alias
    }
    return tuple(each.name for each in reference.scan.input.columns if each.name.lower() in used)


def _anew_in_the_paper(verdict: ReferenceVerdict, operations: Iterable[Operation]) -> tuple[Operation, ...]:
    """Where the published scheme has no rule but the one that evaluates the whole view."""
    if verdict.reference.place is not Place.NEGATIVE:
        anew = () if verdict.safe else (Operation.DELETE, Operation.UPDATE)
    else:
        anew = (
            *(() if verdict.i_safe else (Operation.INSERT,)),
            *(() if verdict.du_safe else (Operation.UPDATE,)),
        )
    return tuple(each for each in operations if each in anew)


def _merged(one: Rule, other: Rule) -> Rule:
    """Two rules with the same trigger and effect as one; an action that both have is done once."""
    columns = {each.operation: each.columns for each in other.triggers}
    known = {each.operation for each in one.triggers}
    triggers = tuple(
        replace(each, columns=tuple(dict.fromkeys((*each.columns, *columns.get(each.operation, ())))))
        for each in one.triggers
    )
    more = tuple(each for each in other.triggers if each.operation not in known)
    seen = [each.rows for each in one.actions]
    actions = tuple(each for each in other.actions if each.rows not in seen or each.sign)
    reasons = dict.fromkeys(each for each in (one.reason, other.reason) if each)
    return replace(
        one,
        triggers=triggers + more,
        actions=one.actions + actions,
        reason="; ".join(reasons),
        anew_in_the_paper=tuple(dict.fromkeys((*one.anew_in_the_paper, *other.anew_in_the_paper))),
    )


def _with_distinct_names(rules: list[Rule]) -> list[Rule]:
    names = [rule.name for rule in rules]
    return [
        replace(rule, name=f"{rule.name}_{rule.effect.value}s") if names.count(rule.name) > 1 else rule
        for rule in rules
    ]


def _rematerializing(
    rules: RuleSet, analysis: ViewAnalysis, found: list[Rule], chosen: frozenset[tuple[str, Operation]]
) -> list[Rule]:
    """The rules without the triggers that the user has moved to rematerializing, and the rule that does it."""
    triggers = list(
        dict.fromkeys(
            replace(each, columns=())
            for rule in found
            for each in rule.triggers
            if (each.object_id, each.operation) in chosen
        )
    )
    if not triggers:
        return found
    writer = BlockWriter()
    rows = writer.selection(analysis.selection, rules.columns, all_in(State.NEW))
    action = Action(rows, rules.columns, writer.tables, Certainty.CHECKED)
    first = Rule(
        f"rematerialize_{rules.stem}",
        tuple(triggers),
        Effect.REMATERIALIZE,
        (action,),
        reason="by the user's choice; the other rules rest until the next refresh",
    )
    left = []
    for rule in found:
        kept = tuple(each for each in rule.triggers if (each.object_id, each.operation) not in chosen)
        if kept:
            left.append(replace(rule, triggers=kept))
    return [first, *left]


def _in_order(rules: list[Rule]) -> tuple[Rule, ...]:
    order = list(Effect)
    ordered = sorted(rules, key=lambda rule: order.index(rule.effect))
    return tuple(
        replace(
            rule,
            precedes=tuple(
                each.name for each in ordered if order.index(each.effect) > order.index(rule.effect)
            ),
        )
        for rule in ordered
    )
