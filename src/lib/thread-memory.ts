/** Of the thread that asks. */
export function threadMemory(): {
  readonly heapUsedBytes: number
  readonly heapTotalBytes: number
  readonly externalBytes: number
} {
  const { heapUsed, heapTotal, external } = process.memoryUsage()
  return { heapUsedBytes: heapUsed, heapTotalBytes: heapTotal, externalBytes: external }
}
