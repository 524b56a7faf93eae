import { describe, expect, test } from 'vitest'
import { LinkedList, type ListLinks } from '../../src/lib/linked-list.ts'

interface Member extends ListLinks<Member> {
  readonly name: string
}

const member = (name: string): Member => ({ name, before: null, after: null })
const namesOf = (list: LinkedList<Member>): string[] => [...list].map(({ name }) => name)

describe('A linked list', () => {
  test('returns its members in the order in which they were appended', () => {
    const list = new LinkedList<Member>()
    expect(list.isEmpty).toBe(true)
    for (const name of ['a', 'b', 'c']) list.append(member(name))
    expect(namesOf(list)).toEqual(['a', 'b', 'c'])
    expect(list.isEmpty).toBe(false)
  })

  test('removes members at both ends and in the middle, each only once', () => {
    const all = ['a', 'b', 'c', 'd'].map(member)
    const list = new LinkedList<Member>()
    for (const each of all) list.append(each)
    const left = ['a', 'b', 'c', 'd']
    for (const at of [1, 0, 3, 2]) {
      const gone = all[at] as Member
      expect(list.remove(gone)).toBe(true)
      expect(list.remove(gone)).toBe(false)
      expect(gone).toEqual({ name: gone.name, before: null, after: null })
      left.splice(left.indexOf(gone.name), 1)
      expect(namesOf(list)).toEqual(left)
    }
    expect(list.isEmpty).toBe(true)
  })

  test('accepts a removed member again, and appends it at the end', () => {
    const [a, b] = [member('a'), member('b')]
    const list = new LinkedList<Member>()
    list.append(a)
    list.append(b)
    list.remove(a)
    list.append(a)
    expect(namesOf(list)).toEqual(['b', 'a'])
    // Also the last member must be found after the member before it was removed.
    list.remove(a)
    list.append(a)
    expect(namesOf(list)).toEqual(['b', 'a'])
  })

  test('allows the removal of the member that an iteration has just returned', () => {
    const list = new LinkedList<Member>()
    for (const name of ['a', 'b', 'c']) list.append(member(name))
    const given: string[] = []
    for (const each of list) {
      given.push(each.name)
      list.remove(each)
    }
    expect(given).toEqual(['a', 'b', 'c'])
    expect(list.isEmpty).toBe(true)
  })
})
