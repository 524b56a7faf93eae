import { isTree, membersOf, nameOf, type Role, type Tree } from './tree.ts'

/** A piece of code: its nodes and its text. */
export interface Piece {
  readonly text: string
  readonly nodes: readonly Tree[]
}

/** The source code that the names and placeholders of a fragment match. */
export interface Bound {
  readonly variables: Map<string, string>
  /**
   * Matched properties by name and by the expression before them: `a.x` and `b.x` may be two
   * different properties.
   */
  readonly properties: Map<string, Map<string, string>>
  /** Matched nodes by placeholder, `$name` or `$$$name`. */
  readonly gaps: Map<string, readonly Tree[]>
}

export function nothingBound(): Bound {
  return { variables: new Map(), properties: new Map(), gaps: new Map() }
}

/**
 * @returns the placeholder: `$name`, which stands for any node, or `$$$name`, which stands for any
 * number of list elements; null for other nodes.
 */
export function gapOf(node: unknown): string | null {
  if (!isTree(node)) return null
  if (node.type === 'ExpressionStatement') return gapOf(node['expression'])
  if (node.type === 'TSTypeReference' && node['typeArguments'] === null)
    return gapOf(node['typeName'])
  if (node.type === 'Property' && node['shorthand'] === true) return gapOf(node['value'])
  const isNamed = node.type === 'Identifier' && /^\$(?:\$\$)?\w+$/.test(String(node['name']))
  return isNamed ? String(node['name']) : null
}

/**
 * @returns the expression before a property, such as `a.b` before `.c`; empty for a key of an
 * object or class.
 */
export function ownerOf(parent: Tree | null, text: string): string {
  const object = parent?.type === 'MemberExpression' ? parent['object'] : null
  return isTree(object) ? text.slice(object.start, object.end).replaceAll(/[\s?!()]/g, '') : ''
}

/** @returns the matched code if the nodes have the form of the fragment; null otherwise. */
export function match(
  fragment: Piece,
  nodes: readonly Tree[],
  place: { readonly parent: Tree | null; readonly member: string },
): Bound | null {
  const bound = nothingBound()
  const matcher = new Matcher(fragment.text, bound)
  return matcher.list(fragment.nodes, nodes, { parent: null, member: '', source: place })
    ? bound
    : null
}

/** Parent nodes of the two compared nodes, in the fragment and in the source. */
interface Place {
  readonly parent: Tree | null
  readonly member: string
  readonly source: { readonly parent: Tree | null; readonly member: string }
}

class Matcher {
  readonly #text: string
  readonly #bound: Bound

  constructor(text: string, bound: Bound) {
    this.#text = text
    this.#bound = bound
  }

  list(wanted: readonly unknown[], given: readonly unknown[], place: Place): boolean {
    const [first, ...rest] = wanted
    if (wanted.length === 0) return given.length === 0
    const gap = gapOf(first)
    if (gap?.startsWith('$$$') === true) {
      // The placeholder matches all elements that the others leave; a list has only one such
      // placeholder.
      const count = given.length - rest.length
      if (count < 0) return false
      this.#bound.gaps.set(gap, given.slice(0, count).filter(isTree))
      return this.list(rest, given.slice(count), place)
    }
    return (
      given.length > 0 &&
      this.#value(first, given[0], place) &&
      this.list(rest, given.slice(1), place)
    )
  }

  #value(wanted: unknown, given: unknown, place: Place): boolean {
    if (Array.isArray(wanted)) return Array.isArray(given) && this.list(wanted, given, place)
    if (isTree(wanted)) return isTree(given) && this.#node(wanted, given, place)
    return JSON.stringify(wanted) === JSON.stringify(given) && typeof wanted === typeof given
  }

  #node(wanted: Tree, given: Tree, { parent, member, source }: Place): boolean {
    const gap = gapOf(wanted)
    if (gap !== null) {
      this.#bound.gaps.set(gap, [given])
      return true
    }
    const name = nameOf(wanted, parent, member)
    if (name !== null) {
      const other = nameOf(given, source.parent, source.member)
      if (other === null || other.role !== name.role) return false
      if (!this.#bind(name, other.name, ownerOf(parent, this.#text))) return false
      if (wanted.type !== 'Identifier' || given.type !== 'Identifier') return true
    }
    if (wanted.type !== given.type) return false
    const ofWanted = membersOf(wanted)
    if (ofWanted.length !== membersOf(given).length) return false
    return ofWanted.every(
      ([key, value]) =>
        (key === 'name' && name !== null) ||
        this.#value(value, given[key], {
          parent: wanted,
          member: key,
          source: { parent: given, member: key },
        }),
    )
  }

  #bind(
    { name, role }: { readonly name: string; readonly role: Role },
    other: string,
    owner: string,
  ): boolean {
    if (role === 'itself') return name === other
    if (name.startsWith('#') !== other.startsWith('#')) return false
    const names =
      role === 'variable'
        ? this.#bound.variables
        : (this.#bound.properties.get(name) ?? new Map<string, string>())
    if (role === 'property') this.#bound.properties.set(name, names)
    const key = role === 'variable' ? name : owner
    const known = names.get(key)
    names.set(key, other)
    return known === undefined || known === other
  }
}
