/**
 * Prints how many runs fit into one second of processor time, which is independent of other load on
 * the machine.
 */
export function bench(what: string, times: number, run: (at: number) => void): void {
  for (let at = 0; at < times / 10; at += 1) run(at)
  const before = process.cpuUsage()
  for (let at = 0; at < times; at += 1) run(at)
  const { user, system } = process.cpuUsage(before)
  const perSecond = times / ((user + system) / 1e6)
  console.log(`${what}: ${Math.round(perSecond).toLocaleString('en')} a second of processor time`)
}
