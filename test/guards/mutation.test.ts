import { describe, expect, test } from 'vitest'
import { MarkedSource, SourceFile } from './markers.ts'
import { applyMutation, markerMisfits, misfitsOf, parseMutation } from './mutation.ts'

const path = 'test/guards/m.mutation'

function sourceOf(...texts: readonly string[]): MarkedSource {
  return new MarkedSource(texts.map((text, at) => new SourceFile(`src/${'abc'[at]}.ts`, text)))
}

/** @returns the mutated text of the only file. */
function mutated(text: string, mutation: string): string | undefined {
  return applyMutation(parseMutation('m', path, mutation), sourceOf(text))[0]?.text
}

function misfits(text: string, mutation: string): string[] {
  return misfitsOf([parseMutation('m', path, mutation)], sourceOf(text))
}

describe('a mutation (a patch that plants a bug in a copy of the source)', () => {
  const guard = '# Guard: g.\n- isOpen(gate) && gate.isLocked\n+ isOpen(gate)\n'

  test('replaces the code that matches its "-" lines, and changes nothing else', () => {
    const text = 'const x  = 1 // odd\n// @guard m\nif (isOpen(gate) && gate.isLocked) stop()\n'
    expect(mutated(text, guard)).toBe(
      'const x  = 1 // odd\n// @guard m\nif (isOpen(gate)) stop()\n',
    )
  })

  test('still applies after functions, variables and properties were renamed', () => {
    const text = '// @guard m\nif (canPass(door) && door.isShut) stop()\n'
    expect(mutated(text, guard)).toBe('// @guard m\nif (canPass(door)) stop()\n')
  })

  test('still applies if the layout, comments, quotes or parentheses have changed', () => {
    const text = '// @guard m\nif (\n  (a["x"] === "y") /* why */ &&\n  // so\n  b(c,)\n) stop()\n'
    const mutation = "- a['x'] === 'y' && b(c)\n+ b(c)\n"
    expect(mutated(text, mutation)).toBe('// @guard m\nif (\n  b(c)\n) stop()\n')
  })

  test('still applies after one of two properties with the same name was renamed', () => {
    const mutation = '- a.term < b.term\n+ a.term <= b.term\n'
    expect(mutated('// @guard m\nrun(a.term < b.epoch)', mutation)).toBe(
      '// @guard m\nrun(a.term <= b.epoch)',
    )
  })

  test('expands a shorthand property if its key and its variable now have different names', () => {
    const mutation = '- open({ gate })\n+ shut({ gate })\n'
    const text = 'shut()\n// @guard m\nopen({ door: gate })\n'
    expect(mutated(text, mutation)).toBe('shut()\n// @guard m\nshut({ door: gate })\n')
  })

  test('matches each of its names with only one name in the source', () => {
    expect(misfits('// @guard m\nrun(a, b)', '- run(a, a)\n+ run(a)\n')).toEqual([
      `${path}: below "@guard m" at src/a.ts:1 nothing has the form of the "-" lines; write them for the code as it is`,
    ])
  })

  test('matches literals by their value', () => {
    expect(mutated('// @guard m\nrun(1_000, "a", /x/)', "- run(1000, 'a', /x/)\n+ run()\n")).toBe(
      '// @guard m\nrun()',
    )
    expect(misfits('// @guard m\nrun(2)', '- run(1)\n+ run()\n')).toHaveLength(1)
    expect(misfits('// @guard m\nrun(null)', '- run(undefined)\n+ run()\n')).toHaveLength(1)
  })

  test('can delete statements, members and list items', () => {
    const statement = '- check(a)\n'
    expect(mutated('// @guard m\ncheck(b)\nrun()\n', statement)).toBe('// @guard m\n\nrun()\n')
    expect(mutated('if (a)\n  run()\n// @guard m\nif (a) check(a)\n', statement)).toBe(
      'if (a)\n  run()\n// @guard m\nif (a) {}\n',
    )
    expect(mutated('x = {\n  // @guard m\n  a: 1,\n  b,\n}', '- c: 1\n')).toBe(
      'x = {\n  // @guard m\n  b,\n}',
    )
    expect(mutated("// @guard m\nrun(['a', 'b', 'c'])", "- 'c'\n")).toBe(
      "// @guard m\nrun(['a', 'b'])",
    )
  })

  test('can insert statements next to the marked statement', () => {
    expect(mutated('// @guard m\nfirst(x)\n', '- run(a)\n+ run(a)\n+ run(a)\n')).toBe(
      '// @guard m\nfirst(x)\nfirst(x)\n',
    )
  })

  test('can replace statements that follow the marked statement in its list', () => {
    const text = '// @guard m\nconst a = 1\nrun(a)\nend()\n'
    expect(mutated(text, '- const b = 1\n- go(b)\n+ go(1)\n')).toBe('// @guard m\nrun(1)\nend()\n')
  })

  test('keeps the code that $name and $$$name match', () => {
    const text = '// @guard m\nif (x.y) {\n  one() // here\n  two()\n}\n'
    expect(
      mutated(text, '- if ($test) {\n-   $$$rest\n- }\n+ if (!$test) {\n+   $$$rest\n+ }\n'),
    ).toBe('// @guard m\nif (!x.y) {\n  one() // here\n  two()\n}\n')
  })

  test('can match members of classes and interfaces, cases of a switch, and types', () => {
    expect(
      mutated(
        'class A {\n  // @guard m\n  #a() { return 1 }\n}',
        '- #b() { return 1 }\n+ #b() {}\n',
      ),
    ).toBe('class A {\n  // @guard m\n  #a() {}\n}')
    expect(mutated('interface A {\n  // @guard m\n  a: string\n}', '- string\n+ number\n')).toBe(
      'interface A {\n  // @guard m\n  a: number\n}',
    )
    expect(
      mutated("switch (a) {\n  // @guard m\n  case 'x':\n    run()\n}", "- case 'x':\n-   run()\n"),
    ).toBe('switch (a) {\n  // @guard m\n  \n}')
  })

  test('adds a statement that JavaScript does not parse as a continuation of the previous line', () => {
    expect(mutated('run()\n// @guard m\nx()\n', '- a()\n+ ;[1].map(a)\n')).toBe(
      'run()\n// @guard m\n;[1].map(x)\n',
    )
  })

  test('can change several places, each with a numbered marker', () => {
    const text = '// @guard m:1\na(1)\n// @guard m:2\nb(2)\n'
    const mutation = '@ place 1\n- x(1)\n+ x(3)\n@ place 2\n- x(2)\n'
    expect(mutated(text, mutation)).toBe('// @guard m:1\na(3)\n// @guard m:2\n\n')
  })
})

describe('a mutation whose "-" lines match several equal places', () => {
  const text = '// @guard m\nrun(a.b, c.d)\n'

  test('is not applied', () => {
    expect(misfits(text, '- x.y\n+ x\n')).toEqual([
      `${path}: below "@guard m" at src/a.ts:1 2 places have the form of the "-" lines; add to them until one is left, or write "@ match K of 2" above them`,
    ])
  })

  test('is applied to the place with the given number, if the given total is right', () => {
    expect(mutated(text, '@ match 2 of 2\n- x.y\n+ x\n')).toBe('// @guard m\nrun(a.b, c)\n')
    expect(misfits(text, '@ match 2 of 3\n- x.y\n+ x\n')).toEqual([
      `${path}: below "@guard m" at src/a.ts:1 2, not 3, places have the form of the "-" lines; add to them until one is left, or write "@ match K of 2" above them`,
    ])
  })
})

describe('The comment in the source that marks the place of a mutation', () => {
  const mutation = parseMutation('m', path, '- run(a)\n')

  test('is required', () => {
    expect(misfitsOf([mutation], sourceOf('run(a)'))).toEqual([
      `${path}: no comment "// @guard m" is in src; put it before the statement or member to mutate, or delete the mutation with its proof`,
    ])
  })

  test('is reported as a fault if it occurs twice', () => {
    const source = sourceOf('// @guard m\nrun(a)', '\n// @guard x, m\nrun(a)')
    expect(misfitsOf([mutation], source)).toEqual([
      `${path}: "@guard m" is at src/a.ts:1 and src/b.ts:2; leave it at one of them`,
    ])
  })

  test('is reported as a fault if it is not before a statement or member', () => {
    expect(misfitsOf([mutation], sourceOf('run(\n// @guard m\na)'))).toEqual([
      `${path}: no statement or member follows "@guard m" at src/a.ts:2; put the comment before one`,
    ])
  })

  test('belongs to only one mutation', () => {
    const source = sourceOf('// @guard m, n\nrun(a)')
    const other = parseMutation('m', 'test/zoo/m.mutation', '- run(a)\n')
    expect(markerMisfits([mutation, other], source)).toEqual([
      `src/a.ts:1: "@guard m" belongs to ${path} and test/zoo/m.mutation; rename one of them`,
      'src/a.ts:1: "@guard n" belongs to no mutation; remove the marker, or write the mutation',
    ])
  })

  test('may be followed by other comments and markers', () => {
    const text = '// @guard m\n// @guard n\n/** Why. */\n// So.\nexport function run() {}\n'
    const [marker] = sourceOf(text).markers
    expect(marker?.marked?.node.type).toBe('ExportNamedDeclaration')
  })
})

describe('a name in the "+" lines of a mutation', () => {
  test('prevents the mutation if the file does not contain the name', () => {
    expect(misfits('// @guard m\nrun(a)', '- run(a)\n+ gone(a)\n')).toEqual([
      `${path}: below "@guard m" at src/a.ts:1 the "+" lines name gone, which src/a.ts no longer has; write the name that it has now`,
    ])
  })

  test('prevents the mutation if it is a property that src does not contain', () => {
    expect(misfits('// @guard m\nrun(a)', '- run(a)\n+ a.gone\n')).toEqual([
      `${path}: below "@guard m" at src/a.ts:1 the "+" lines name gone, which src no longer has; write the name that it has now`,
    ])
  })

  test('may be new if the mutation declares it as new', () => {
    expect(mutated('// @guard m\nrun(a)', '@ new fresh\n- run(a)\n+ run({ fresh: a })\n')).toBe(
      '// @guard m\nrun({ fresh: a })',
    )
  })

  test('may be global, declared by the "+" lines, or elsewhere in the file', () => {
    const text = 'let other\n// @guard m\nrun(a)'
    const mutation = '- run(a)\n+ const b = Math.max(other)\n+ run(b)\n'
    expect(mutated(text, mutation)).toBe(
      'let other\n// @guard m\nconst b = Math.max(other)\nrun(b)',
    )
  })

  test('prevents the mutation if it may be either of two properties in the source', () => {
    const mutation = '@ new c\n- run(a.x, b.x)\n+ c.x\n'
    expect(misfits('// @guard m\nrun(a.one, b.two)', mutation)).toEqual([
      `${path}: below "@guard m" at src/a.ts:1 the "-" lines have several properties x, which are one and two now; the "+" lines do not show which one is meant`,
    ])
  })
})

test('a mutation file that does not have the documented format is refused', () => {
  for (const text of ['', '# Guard: g.\n', '+ a\n', '+ a\n- b\n', 'a\n', '@ match x\n- a\n']) {
    expect(() => parseMutation('m', path, text), text).toThrow(
      `${path}: not the form that test/guards/README.md describes`,
    )
  }
})
