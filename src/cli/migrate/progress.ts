import { printNote } from '../terminal/output.ts'

/** Prints a progress line on stderr for each tenth of a file, if its reader reports progress. */
export function createProgressPrinter(isSilent: boolean): (path: string, share: number) => void {
  const tenths = new Map<string, number>()
  return (path, share) => {
    const tenth = Math.floor(share * 10)
    if (isSilent || tenth <= (tenths.get(path) ?? 0)) return
    tenths.set(path, tenth)
    printNote(`${path}: ${tenth * 10} % read`)
  }
}
