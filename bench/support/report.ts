import { execFileSync } from 'node:child_process'
import os from 'node:os'

/** min, median and max of several rounds. */
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

/** The measured subject and machine. */
export function heading(title: string): string {
  let commit = 'unknown'
  try {
    commit = execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' }).trim()
  } catch {
    // Not a checkout: the figures then belong to the version of package.json.
  }
  const cpu = os.cpus()[0]?.model ?? 'unknown CPU'
  return `${title}\n${os.cpus().length} x ${cpu}, ${(os.totalmem() / 2 ** 30).toFixed(0)} GiB, ${os.type()} ${os.release()}, Node ${process.version}, commit ${commit}`
}
