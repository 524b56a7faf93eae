import { execFileSync } from 'node:child_process'
import os from 'node:os'

/** Minimum, median and maximum of the values of several rounds. */
export function spread(values: readonly number[], digits = 0): string {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (q: number): string =>
    (sorted[Math.floor((sorted.length - 1) * q)] ?? NaN).toFixed(digits)
  return `${at(0)} / ${at(0.5)} / ${at(1)}`
}

/** Nearest-rank percentile; sorts its argument. */
export function percentile(values: number[], q: number): number {
  values.sort((a, b) => a - b)
  return values[Math.min(values.length - 1, Math.ceil(values.length * q) - 1)] ?? NaN
}

/** Heading of a report: title, machine, version of Node.js, and commit. */
export function heading(title: string): string {
  let commit = 'unknown'
  try {
    commit = execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' }).trim()
  } catch {
    // Outside of a Git checkout, the commit is unknown.
  }
  const cpu = os.cpus()[0]?.model ?? 'unknown CPU'
  return `${title}\n${os.cpus().length} x ${cpu}, ${(os.totalmem() / 2 ** 30).toFixed(0)} GiB, ${os.type()} ${os.release()}, Node ${process.version}, commit ${commit}`
}
