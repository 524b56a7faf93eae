import type { Piece } from './match.ts'
import { isTree, parse, type Tree } from './tree.ts'

/** A form of code that a fragment may be. */
interface Form {
  readonly name: string
  readonly before: string
  readonly after: string
  /** Finds the fragment in what the parser makes of it and the text around it. */
  readonly nodesIn: (program: Tree) => unknown
}

/** Where a statement may await, yield, break and ask its super class. */
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

/** In the order in which a fragment is tried. */
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

/** A fragment in one of the forms; its nodes are empty when it has no text. */
export interface FormedPiece extends Piece {
  readonly form: string
  /** The text has these before and behind the fragment. */
  readonly start: number
  readonly end: number
}

/** @returns the fragment in each form that its text has, where the order decides which is meant. */
export function piecesOf(fragment: string): FormedPiece[] {
  return forms.flatMap(({ name, before, after, nodesIn }) => {
    const text = before + fragment + after
    const parsed = parse(text)
    const nodes = parsed === null ? undefined : nodesIn(parsed.program)
    if (!Array.isArray(nodes) || !nodes.every(isTree)) return []
    return [{ form: name, text, nodes, start: before.length, end: before.length + fragment.length }]
  })
}
