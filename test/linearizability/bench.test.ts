import { expect, test } from 'vitest'
import { benchCheckers, benchHistory } from '../../bench/linearizability.ts'
import { subjects } from './generate.ts'

test.each(subjects)(
  'the benchmark of the linearizability checkers runs, and both checkers accept its history of a %s',
  (subject) => {
    const history = benchHistory(subject, 400, 5)
    expect(benchCheckers(subject, history).operations).toBe(history.length)
  },
)
