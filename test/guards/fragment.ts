import type { Piece } from './match.ts'
import { isTree, parse, type Tree } from './tree.ts'

/** A syntactic form that a fragment of code may have. */
interface Form {
  readonly name: string
  readonly before: string
  readonly after: string
  /**
   * Returns the nodes of the fragment from the program that consists of the fragment and the text
   * around it.
   */
  readonly nodesIn: (program: Tree) => unknown
}

/** Context in which a statement may use await, yield, break and super. */
const METHOD = 'class A extends B { async *a() { for (;;) {\n'
const METHOD_END = '\n} } }'

function at(node: unknown, ...path: readonly (string | number)[]): unknown {
  let found = node
  for (const step of path) found = (found as Record<string | number, unknown> | undefined)?.[step]
  return found
}

function statementsOfMethod(program: Tree): unknown {
  if ((at(program, 'body') as readonly unknown[]).length !== 1) return undefined
  return at(program, 'body', 0, 'body', 'body', 0, 'value', 'body', 'body', 0, 'body', 'body')
}

/** Forms in the order in which they are tried. */
const forms: readonly Form[] = [
  { name: 'statements', before: METHOD, after: METHOD_END, nodesIn: statementsOfMethod },
  { name: 'statements', before: '', after: '', nodesIn: (program) => at(program, 'body') },
  {
    name: 'members of a class',
    before: 'class A extends B {\n',
    after: '\n}',
    nodesIn: (program) => at(program, 'body', 0, 'body', 'body'),
  },
  {
    name: 'members of an object',
    before: '({\n',
    after: '\n})',
    nodesIn: (program) => at(program, 'body', 0, 'expression', 'properties'),
  },
  {
    name: 'members of an interface',
    before: 'interface A {\n',
    after: '\n}',
    nodesIn: (program) => at(program, 'body', 0, 'body', 'body'),
  },
  {
    name: 'cases of a switch',
    before: `${METHOD}switch (a) {\n`,
    after: `\n}${METHOD_END}`,
    nodesIn: (program) => at(statementsOfMethod(program), 0, 'cases'),
  },
  {
    name: 'an expression',
    before: `${METHOD}a = (\n`,
    after: `\n)${METHOD_END}`,
    nodesIn: (program) => [at(statementsOfMethod(program), 0, 'expression', 'right')],
  },
  {
    name: 'a type',
    before: 'type A =\n',
    after: '\n',
    nodesIn: (program) => [at(program, 'body', 0, 'typeAnnotation')],
  },
]

/** A fragment that was parsed in one of the forms; it has no nodes if its text is empty. */
export interface FormedPiece extends Piece {
  readonly form: string
  /** Length of the text in front of the fragment. */
  readonly start: number
  readonly end: number
}

/** @returns the fragment in each form in which it can be parsed, the preferred form first. */
export function piecesOf(fragment: string): FormedPiece[] {
  return forms.flatMap(({ name, before, after, nodesIn }) => {
    const text = before + fragment + after
    const parsed = parse(text)
    const nodes = parsed === null ? undefined : nodesIn(parsed.program)
    if (!Array.isArray(nodes) || !nodes.every(isTree)) return []
    return [{ form: name, text, nodes, start: before.length, end: before.length + fragment.length }]
  })
}
